-- Do these charges fit, all of them? Then they are taken; a refusal writes nothing.
--
-- KEYS: clock, leases by due time, counters by the time they may be forgotten, this lease, then
-- one counter for each charge. ARGV: time or '', bound or '', id, owner, lease, prefix of lease
-- keys, then unit, cap, window and amount of each charge.
-- Answers "now moved WORD ...": H held already, U used before, T given up before it came,
-- N index (never fits), R index retry (refused), G (granted). R and G end with two numbers for each
-- charge: what is used, and the end of the newest bucket (G: of the bucket it was put in), 0 for none.

local clock, leases, counters, lease_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, owner, lease_us, lease_prefix = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local now, moved, step = store_time(clock, ARGV[1], ARGV[2])
local head = text(now) .. ' ' .. text(step) .. ' '
if step ~= 0 then
  -- Also when this is refused: else time would stand still until something is granted.
  keep_time(clock, now, moved)
end

local held = call('GET', lease_key)
if held then
  if held == TOMBSTONE then
    return head .. 'T'
  end
  local lease = cmsgpack.unpack(held)
  return head .. ((lease[1] == owner and lease[2]) and 'H' or 'U')
end

-- Leases that are over, the earliest first: their slots are free, their estimates stay charged.
local due = call('ZRANGEBYSCORE', leases, '-inf', text(now), 'LIMIT', 0, EXPIRE_AT_MOST)
for _, other in ipairs(due) do
  local key = lease_prefix .. other
  local kept = call('GET', key)
  local is_kept = false
  if kept and kept ~= TOMBSTONE then
    local lease = cmsgpack.unpack(kept)
    if lease[2] then
      for _, line in ipairs(lease[5]) do
        end_line(other, lease, line, line[4])
      end
      if lease[4] > now then
        is_kept = true
        lease[2], lease[3] = false, lease[4]
        call('SET', key, cmsgpack.pack(lease), 'PX', patience_ms(lease[4] - now))
        call('ZADD', leases, text(lease[4]), other)
      end
    end
  end
  if not is_kept then
    call('DEL', key)
    call('ZREM', leases, other)
  end
end
if #due > 0 then
  keep_time(clock, now, moved)
end

-- What each charge finds.
local asks = {}
for i = 5, #KEYS do
  local at = 7 + (i - 5) * 4
  local ask = {
    key = KEYS[i], unit = ARGV[at], cap = tonumber(ARGV[at + 1]),
    window = tonumber(ARGV[at + 2]), amount = tonumber(ARGV[at + 3]),
    used = 0, newest = 0,
  }
  if ask.unit == CONCURRENT then
    ask.used = call('ZCARD', ask.key)
    if ask.used >= ask.cap and ask.used > 0 then
      -- A lease that vanished by its key's own time limit leaves its slot to be swept here.
      local swept = call('ZREMRANGEBYSCORE', ask.key, '-inf', text(now - SLACK_MS * 1000))
      ask.used = ask.used - swept
    end
  else
    local width = math.ceil(ask.window / BUCKETS)
    ask.horizon = now - ask.window
    ask.bucket_end = now - now % width + width
    ask.found = call('HMGET', ask.key, 't', 'o', 'n', 'u', text(ask.bucket_end))
    ask.first = 0
    if ask.found[1] and tonumber(ask.found[3]) > ask.horizon then
      ask.used, ask.newest = tonumber(ask.found[1]), tonumber(ask.found[3])
      ask.first = tonumber(ask.found[2])
      if ask.first <= ask.horizon then
        -- Left the window, still in the hash.
        ask.gone, ask.read = {}, reader(ask.key)
        while ask.first <= ask.horizon do
          local amount, _, _, following = ask.read(ask.first)
          ask.used = ask.used - amount
          ask.gone[#ask.gone + 1] = text(ask.first)
          ask.first = following
        end
      end
    end
  end
  asks[#asks + 1] = ask
end

local function standings(verdict)
  local words = { head .. verdict }
  for _, ask in ipairs(asks) do
    words[#words + 1] = text(ask.used) .. ' ' .. text(ask.newest)
  end
  return table.concat(words, ' ')
end

for index, ask in ipairs(asks) do
  if ask.amount > ask.cap then
    return head .. 'N ' .. (index - 1)
  end
end

-- The limit that takes longest is named, the first of several: obeying it is enough for all.
local worst, longest = nil, 0
for index, ask in ipairs(asks) do
  local missing = ask.used + ask.amount - ask.cap
  if missing > 0 then
    local wait = CONCURRENT_RETRY_US
    if ask.unit ~= CONCURRENT then
      local free_at, bucket_end = now, ask.first
      local read = ask.read or reader(ask.key)
      while bucket_end > 0 do
        local amount, _, _, following = read(bucket_end)
        free_at = bucket_end + ask.window
        missing = missing - amount
        if missing <= 0 then
          break
        end
        bucket_end = following
      end
      wait = math.max(1, free_at - now)
    end
    if wait > longest then
      worst, longest = index, wait
    end
  end
end
if worst then
  return standings('R ' .. (worst - 1) .. ' ' .. text(longest))
end

-- A bucket that is not the newest: after a limit's window was made shorter or longer.
local function insert(ask, fields)
  local before, at = 0, ask.first
  while at > 0 and at < ask.bucket_end do
    local _, _, _, following = parsed(call('HGET', ask.key, text(at)))
    before, at = at, following
  end
  if before > 0 then
    local a, r, o = parsed(call('HGET', ask.key, text(before)))
    fields[#fields + 1] = text(before)
    fields[#fields + 1] = packed(a, r, o, ask.bucket_end)
  else
    ask.first = ask.bucket_end
  end
  ask.newest = math.max(ask.newest, ask.bucket_end)
  return at
end

local function add(ask)
  local until_us = ask.bucket_end + ask.window
  if ask.first == 0 then
    -- Nothing in the hash counts: begin anew.
    call('DEL', ask.key)
    ask.found[5] = false
  elseif ask.gone then
    call('HDEL', ask.key, unpack(ask.gone))
  end
  local fields, is_new = {}, not ask.found[5]
  if is_new then
    local following = 0
    if ask.first == 0 then
      ask.first, ask.newest = ask.bucket_end, ask.bucket_end
    else
      following = insert(ask, fields)
    end
    if ask.found[4] and tonumber(ask.found[4]) > until_us then
      until_us = tonumber(ask.found[4])
    end
    fields[#fields + 1] = text(ask.bucket_end)
    fields[#fields + 1] = packed(ask.amount, ask.amount, 0, following)
  else
    local a, r, o, following = parsed(ask.found[5])
    fields[#fields + 1] = text(ask.bucket_end)
    fields[#fields + 1] = packed(a + ask.amount, r + ask.amount, o, following)
  end
  ask.used = ask.used + ask.amount
  if is_new then
    call('HSET', ask.key, 't', text(ask.used), 'o', text(ask.first), 'n', text(ask.newest),
      'u', text(until_us), unpack(fields))
    call('PEXPIRE', ask.key, patience_ms(until_us - now))
    call('ZADD', counters, text(until_us), ask.key)
  elseif ask.gone then
    call('HSET', ask.key, 't', text(ask.used), 'o', text(ask.first), unpack(fields))
  else
    call('HSET', ask.key, 't', text(ask.used), unpack(fields))
  end
end

local function outlives(key, wanted_ms)
  -- Set far ahead, so that it is rarely set.
  if call('PTTL', key) < tonumber(wanted_ms) then
    call('PEXPIRE', key, text(tonumber(wanted_ms) + SLACK_MS))
  end
end

local lines, counts_until = {}, 0
for _, ask in ipairs(asks) do
  if ask.unit == CONCURRENT then
    call('ZADD', ask.key, text(now + lease_us), id)
    outlives(ask.key, patience_ms(lease_us))
    ask.used = ask.used + 1
    lines[#lines + 1] = { ask.unit, ask.key, 0, ask.amount }
  else
    add(ask)
    lines[#lines + 1] = { ask.unit, ask.key, ask.bucket_end, ask.amount }
    counts_until = math.max(counts_until, ask.bucket_end + ask.window)
    ask.newest = ask.bucket_end
  end
end
local lasts = patience_ms(math.max(lease_us, counts_until - now))
call('SET', lease_key, cmsgpack.pack({ owner, true, now + lease_us, counts_until, lines }),
  'PX', lasts)
call('ZADD', leases, text(now + lease_us), id)
outlives(leases, lasts)

-- Counters in which nothing counts any more.
local idle = call('ZRANGEBYSCORE', counters, '-inf', text(now), 'LIMIT', 0, FORGET_AT_MOST)
for _, key in ipairs(idle) do
  call('DEL', key)
  call('ZREM', counters, key)
end
outlives(counters, lasts)
keep_time(clock, now, moved)
return standings('G')

-- The rest of reserve_first.lua: several charges, slots, new buckets, what is over, refusals.

-- When the first member of an index is due.
local function first_of(index)
  return tonumber(call('ZRANGE', index, 0, 0, 'WITHSCORES')[2] or NEVER)
end

-- Leases that are over, the earliest first: their slots are free, their estimates stay charged.
local function expire()
  local due = call('ZRANGEBYSCORE', due_index, '-inf', text(now), 'LIMIT', 0, EXPIRE_AT_MOST)
  for _, other in ipairs(due) do
    local kept = call('HGET', leases, other)
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
          call('HSET', leases, other, cmsgpack.pack(lease))
          call('ZADD', due_index, text(lease[4]), other)
        end
      end
    end
    if not is_kept then
      call('HDEL', leases, other)
      call('ZREM', due_index, other)
    end
  end
  time.due = first_of(due_index)
  if #due > 0 then
    call('HSET', leases, CLOCK, as_kept(time))
  end
end

if now >= time.due then
  expire()
end

-- What left the window is still in the hash: find what counts.
local function pass_gone(ask)
  ask.gone, ask.read = {}, reader(ask.key)
  while ask.first <= ask.horizon do
    local amount, _, _, following = ask.read(ask.first)
    ask.used = ask.used - amount
    ask.gone[#ask.gone + 1] = text(ask.first)
    ask.first = following
  end
end

-- What each charge finds.
local asks = {}
for i = 1, #KEYS - 3 do
  local cap, window, amount
  cap, window, amount, at = unpacked('<i8i8i8', ARGV[1], at)
  -- All fields at once: a table that grows is made anew several times.
  local ask = {
    key = KEYS[3 + i], unit = ARGV[3 + i], cap = cap, window = window, amount = amount,
    used = 0, newest = 0, first = 0, horizon = 0, bucket_end = 0, field = false,
    bucket = false, until_us = 0, gone = false, read = false,
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
    ask.field = text(ask.bucket_end)
    local found = looked or call('HMGET', ask.key, 'h', ask.field)
    if found[1] then
      local total, oldest, newest, until_us = unpacked(FOUR, found[1])
      ask.until_us = until_us
      if newest > ask.horizon then
        ask.used, ask.newest, ask.first, ask.bucket = total, newest, oldest, found[2]
        if oldest <= ask.horizon then
          pass_gone(ask)
        end
      end
    end
  end
  asks[i] = ask
end

local function standings(letter, ...)
  local numbers = { ... }
  for _, ask in ipairs(asks) do
    numbers[#numbers + 1] = ask.used
    numbers[#numbers + 1] = ask.newest
  end
  return answer(letter, unpack(numbers))
end

for place, ask in ipairs(asks) do
  if ask.amount > ask.cap then
    return answer('N', place - 1)
  end
end

-- The limit that takes longest is named, the first of several: obeying it is enough for all.
local worst, longest = nil, 0
for place, ask in ipairs(asks) do
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
      worst, longest = place, wait
    end
  end
end
if worst then
  return standings('R', worst - 1, longest)
end

-- Where a new bucket belongs: at the end, but for a window that was made shorter or longer.
-- Returns the end of the bucket behind it; adds to `fields` the one before it, which leads to it.
local function insert(ask, fields)
  local before, following = 0, ask.first
  if ask.newest < ask.bucket_end then
    before, following = ask.newest, 0
  else
    while following > 0 and following < ask.bucket_end do
      local _, _, _, behind = unpacked(FOUR, call('HGET', ask.key, text(following)))
      before, following = following, behind
    end
  end
  if before > 0 then
    local field = text(before)
    local a, r, o = unpacked(FOUR, call('HGET', ask.key, field))
    fields[1], fields[2] = field, pack(FOUR, a, r, o, ask.bucket_end)
  else
    ask.first = ask.bucket_end
  end
  return following
end

local function add(ask)
  if ask.first == 0 then
    -- Nothing in the hash counts: begin anew.
    call('DEL', ask.key)
    ask.bucket = false
  elseif ask.gone then
    call('HDEL', ask.key, unpack(ask.gone))
  end
  ask.used = ask.used + ask.amount
  if ask.bucket then
    local a, r, o, following = unpacked(FOUR, ask.bucket)
    call('HSET', ask.key, 'h', pack(FOUR, ask.used, ask.first, ask.newest, ask.until_us),
      ask.field, pack(FOUR, a + ask.amount, r + ask.amount, o, following))
    return
  end
  local fields = {}
  local following = insert(ask, fields)
  local until_us = math.max(ask.until_us, ask.bucket_end + ask.window)
  call('HSET', ask.key,
    'h', pack(FOUR, ask.used, ask.first, math.max(ask.newest, ask.bucket_end), until_us),
    ask.field, pack(FOUR, ask.amount, ask.amount, 0, following), unpack(fields))
  call('PEXPIRE', ask.key, patience_ms(until_us - now))
  call('ZADD', counters, text(until_us), ask.key)
  time.idle = math.min(time.idle, until_us)
end

local lines, counts_until = {}, 0
for place, ask in ipairs(asks) do
  if ask.unit == CONCURRENT then
    call('ZADD', ask.key, text(now + lease_us), id)
    if call('PTTL', ask.key) < lease_us / 1000 + SLACK_MS then
      -- Set far ahead, so that it is rarely set.
      call('PEXPIRE', ask.key, patience_ms(2 * lease_us))
    end
    ask.used = ask.used + 1
    lines[place] = { ask.unit, ask.key, 0, ask.amount }
  else
    add(ask)
    ask.newest = ask.bucket_end
    lines[place] = { ask.unit, ask.key, ask.bucket_end, ask.amount }
    counts_until = math.max(counts_until, ask.bucket_end + ask.window)
  end
end
local due = now + lease_us
call('ZADD', due_index, text(due), id)
time.due = math.min(time.due, due)
if now >= time.idle then
  -- Counters in which nothing counts any more.
  local idle = call('ZRANGEBYSCORE', counters, '-inf', text(now), 'LIMIT', 0, FORGET_AT_MOST)
  for _, key in ipairs(idle) do
    call('DEL', key)
    call('ZREM', counters, key)
  end
  time.idle = first_of(counters)
end
outlive(time, math.max(lease_us, counts_until - now), leases, due_index, counters)
call('HSET', leases, CLOCK, as_kept(time),
  id, cmsgpack.pack({ owner, true, due, counts_until, lines }))
return standings('G')

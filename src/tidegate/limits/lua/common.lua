-- What do all scripts of the books share?
--
-- Lives here: store time, the buckets of a counter, the end of one line of a lease. Loaded in
-- front of each script, behind the numbers that redis_script.py takes from window.py and
-- books.py. Whole microseconds everywhere: a double is exact up to 2^53, so until the year 2255.
--
-- A counter is one hash: t total, o end of the oldest bucket, n of the newest, u when it may be
-- forgotten, and each bucket under its end as "amount reserved overrun next": `next` is the end
-- of the following bucket, 0 behind the last.

local call = redis.call

local function text(number)
  return string.format('%.0f', number)
end

local function patience_ms(microseconds)
  -- Redis counts this by its own wall clock, we by store time: the slack covers the difference.
  return text(math.ceil(microseconds / 1000) + SLACK_MS)
end

-- Store time: that of the server, moved so that it never goes back (a clock set back would lock
-- everybody out for as long) and never runs ahead of what the asking process has seen pass
-- (a clock set ahead would hand everybody a fresh quota). `bound` is the newest time that is
-- plausible to the asking process, '' when it has not seen the store yet.
local function store_time(clock, given, bound)
  local now
  if given == '' then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  else
    now = tonumber(given)
  end
  local seen, moved = 0, 0
  local kept = call('GET', clock)
  if kept then
    local a, b = string.match(kept, '^(%d+) (-?%d+)$')
    seen, moved = tonumber(a), tonumber(b)
  end
  local was_moved = moved
  now = now + moved
  if bound ~= '' then
    local excess = now - tonumber(bound)
    if excess > TOLERANCE_US then
      moved = moved - excess
      now = now - excess
    end
  end
  if now < seen then
    moved = moved + seen - now
    now = seen
  end
  return now, moved, moved - was_moved
end

local function keep_time(clock, now, moved)
  call('SET', clock, text(now) .. ' ' .. text(moved), 'PX', CLOCK_MS)
end

local function parsed(bucket)
  local amount, reserved, overrun, following =
    string.match(bucket, '^(%-?%d+) (%-?%d+) (%-?%d+) (%d+)$')
  return tonumber(amount), tonumber(reserved), tonumber(overrun), tonumber(following)
end

local function packed(amount, reserved, overrun, following)
  return text(amount) .. ' ' .. text(reserved) .. ' ' .. text(overrun) .. ' ' .. text(following)
end

-- A way to read buckets one after the other: a few one by one, then all at once, because most
-- walks end soon and the others must not cost one lookup for each of 241 buckets.
local function reader(key)
  local reads, all = 0, nil
  return function(bucket_end)
    local field = text(bucket_end)
    if all then
      return parsed(all[field])
    end
    reads = reads + 1
    if reads <= 6 then
      return parsed(call('HGET', key, field))
    end
    all = {}
    local flat = call('HGETALL', key)
    for i = 1, #flat, 2 do
      all[flat[i]] = flat[i + 1]
    end
    return parsed(all[field])
  end
end

-- Changes a bucket by these differences, if it still exists.
local function correct(key, bucket_end, amount, reserved, overrun)
  local field = text(bucket_end)
  local found = call('HMGET', key, 't', field)
  if not found[2] then
    return
  end
  local a, r, o, following = parsed(found[2])
  call('HSET', key, 't', text(tonumber(found[1]) + amount),
    field, packed(a + amount, r + reserved, o + overrun, following))
end

-- A lease: {owner, is open, due, counts until, {{unit, counter, bucket end, amount}, ...}}.
-- Its line ends with `actual` in the place of its amount.
local function end_line(id, lease, line, actual)
  if line[1] == CONCURRENT then
    -- The slot is under the id of the lease, so no lease can ever give back another's.
    call('ZREM', line[2], id)
    return
  end
  local more = actual - line[4]
  correct(line[2], line[3], more, lease[2] and -line[4] or 0, math.max(0, more))
end

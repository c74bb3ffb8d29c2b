-- How is a counter read, corrected and kept alive?
--
-- Lives here: the buckets of a counter, the end of one line of a lease, how long keys live. Loaded
-- behind common.lua, and not before it is needed: a function that is made costs, called or not.

local function patience_ms(microseconds)
  -- Redis counts this by its own wall clock, we by store time: the slack covers the difference.
  return text(math.ceil(microseconds / 1000) + SLACK_MS)
end

-- Leases and indexes must not go before what is in them.
local function outlive(time, lasts, leases, due_index, counters)
  if time.now + lasts <= time.lives then
    return
  end
  -- Set far ahead, so that it is rarely set.
  time.lives = time.now + 2 * lasts
  call('HSET', leases, CLOCK, as_kept(time))
  call('PEXPIRE', leases, patience_ms(2 * lasts))
  for _, index in ipairs({ due_index, counters }) do
    -- A member that is never due: an index that falls empty would lose its time limit.
    call('ZADD', index, text(NEVER), '')
    call('PEXPIRE', index, patience_ms(2 * lasts))
  end
end

-- A way to read buckets one after the other: a few one by one, then all at once, because most
-- walks end soon and the others must not cost one lookup for each of 241 buckets.
local function reader(key)
  local reads, all = 0, nil
  return function(bucket_end)
    local field = text(bucket_end)
    if all then
      return unpacked(FOUR, all[field])
    end
    reads = reads + 1
    if reads <= 6 then
      return unpacked(FOUR, call('HGET', key, field))
    end
    all = {}
    local flat = call('HGETALL', key)
    for i = 1, #flat, 2 do
      all[flat[i]] = flat[i + 1]
    end
    return unpacked(FOUR, all[field])
  end
end

-- Changes a bucket by these differences, if it still exists.
local function correct(key, bucket_end, amount, reserved, overrun)
  local field = text(bucket_end)
  local found = call('HMGET', key, 'h', field)
  if not found[2] then
    return
  end
  local total, oldest, newest, until_us = unpacked(FOUR, found[1])
  local a, r, o, following = unpacked(FOUR, found[2])
  call('HSET', key, 'h', pack(FOUR, total + amount, oldest, newest, until_us),
    field, pack(FOUR, a + amount, r + reserved, o + overrun, following))
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

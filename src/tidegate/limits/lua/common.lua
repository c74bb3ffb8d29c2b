-- What do all scripts of the books share?
--
-- Lives here: store time, the buckets of a counter, the end of one line of a lease. Loaded in
-- front of each script, behind the numbers that redis_script.py takes from window.py and
-- books.py. Whole microseconds everywhere: a double is exact up to 2^53, so until the year 2255.
-- What is kept together is one value of packed 64-bit numbers, which costs a third of text.
--
-- A counter is one hash. Its field `h` (head): total, end of the oldest bucket, of the newest,
-- when it may be forgotten. Each bucket stands under its end: amount, reserved, overrun, and the
-- end of the following bucket, 0 behind the last.

local call, pack, unpacked = redis.call, struct.pack, struct.unpack

local FOUR = '<i8i8i8i8'

local function text(number)
  return string.format('%d', number)
end

local function patience_ms(microseconds)
  -- Redis counts this by its own wall clock, we by store time: the slack covers the difference.
  return text(math.ceil(microseconds / 1000) + SLACK_MS)
end

-- Store time: that of the server, moved so that it never goes back (a clock set back would lock
-- everybody out for as long) and never runs ahead of what the asking process has seen pass
-- (a clock set ahead would hand everybody a fresh quota). `bound` is the newest time that is
-- plausible to the asking process. `given` and `bound` are NONE when there is none.
--
-- A command that lay here while the server stood still brings a bound of that time, and looks
-- like a clock set ahead. Only who asked can tell: nothing is moved back before retime.lua is
-- told to, `is_late` says that it may be due.
--
-- `kept` is the clock as it is stored: the newest time in the books, how far time was moved,
-- before when no lease is due and no counter idle, until when leases and indexes live, and the
-- number these books were given when they were begun.
local function time_of(kept, given, bound)
  local time = {
    now = 0, moved = 0, step = 0, due = 0, idle = 0, lives = 0, books = 0, seen = 0,
    is_late = false,
  }
  if kept then
    time.seen, time.moved, time.due, time.idle, time.lives, time.books =
      unpacked('<i8i8i8i8i8i8', kept)
  end
  local now = given
  if given == NONE then
    local words = call('TIME')
    now = words[1] * 1000000 + words[2]
  end
  now = now + time.moved
  time.is_late = bound ~= NONE and now - bound > TOLERANCE_US
  if now < time.seen then
    time.step = time.seen - now
    now = time.seen
  end
  time.moved = time.moved + time.step
  time.now = now
  return time
end

local function as_kept(time)
  return pack('<i8i8i8i8i8i8',
    time.now, time.moved, time.due, time.idle, time.lives, time.books)
end

-- What is answered instead of an act: that these are not the books that the asking process knows
-- (they were emptied or exchanged), or that it must say first whether the clock is ahead. nil:
-- all is well.
local function objection(time, books)
  if books ~= NONE and time.books ~= books then
    return 'F' .. pack('<i8i8', time.now, 0)
  end
  if time.is_late then
    return 'L' .. pack('<i8i8i8', time.now, 0, time.moved)
  end
  return nil
end

-- Leases are one hash by their ids, with the clock beside them, so that both are one command.
local CLOCK = ''

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

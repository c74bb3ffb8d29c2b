-- What do all scripts of the books share?
--
-- Lives here: store time, and what a value of the books looks like. Does not live here: how the
-- buckets of a counter are read and changed (counters.lua). Loaded in front of each script, behind
-- the numbers that redis_script.py takes from window.py and books.py. Whole microseconds everywhere: a double is exact up to 2^53, so until the year 2255.
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

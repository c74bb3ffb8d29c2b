-- How many processes share this store? The asking one is among them for a while, or leaves.
--
-- KEYS: leases, their ids by due time, counters by the time they may be forgotten, members.
-- ARGV: numbers (time, bound, books, how long it counts; 0: it leaves, a number for books that
-- have none), member.
-- Answers an objection (see common.lua), or "M" and numbers: now, how far this moved it, count,
-- the number of these books.

local given, bound, books, lasts, fresh = unpacked('<i8i8i8i8i8', ARGV[1])
local time = time_of(call('HGET', KEYS[1], CLOCK), given, bound)
local objects = objection(time, books)
if objects then
  return objects
end
if time.books == 0 then
  time.books = fresh
end
if lasts > 0 then
  call('ZADD', KEYS[4], text(time.now + lasts), ARGV[2])
  call('PEXPIRE', KEYS[4], patience_ms(lasts))
else
  call('ZREM', KEYS[4], ARGV[2])
end
call('ZREMRANGEBYSCORE', KEYS[4], '-inf', text(time.now))
outlive(time, lasts, KEYS[1], KEYS[2], KEYS[3])
call('HSET', KEYS[1], CLOCK, as_kept(time))
return 'M' .. pack('<i8i8i8i8', time.now, time.step, call('ZCARD', KEYS[4]), time.books)

-- The clock of the server was set ahead: move store time back by as much.
--
-- KEYS: leases, their ids by due time, counters by the time they may be forgotten. ARGV: numbers
-- (how far time is moved, how far it is to be). The asking process has measured this, so it is
-- right whenever it comes; of several who measured the same, one moves it.
-- Answers 1 if this call moved it.

local was, becomes = unpacked('<i8i8', ARGV[1])
local time = time_of(call('HGET', KEYS[1], CLOCK), 0, NONE)
local moved = time.moved - time.step
if moved ~= was then
  return 0
end
time.now, time.moved = time.seen, becomes
call('HSET', KEYS[1], CLOCK, as_kept(time))
return 1

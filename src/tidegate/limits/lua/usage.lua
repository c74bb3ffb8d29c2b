-- What does one counter hold? Writes nothing.
--
-- KEYS: leases, their ids by due time, counters by the time they may be forgotten, this counter.
-- ARGV: numbers (time, bound, books, window), unit.
-- Answers an objection (see common.lua), or "U" and numbers: now, how far it is moved, total, reserved, overrun, and the end of
-- the oldest bucket with anything in it, 0 if there is none. For `concurrent` the total is the
-- number of slots taken.

local given, bound, books, window = unpacked('<i8i8i8i8', ARGV[1])
local time = time_of(call('HGET', KEYS[1], CLOCK), given, bound)
local objects = objection(time, books)
if objects then
  return objects
end
local now, step = time.now, time.step
if ARGV[2] == CONCURRENT then
  return 'U' .. pack('<i8i8i8i8i8i8', now, step, call('ZCARD', KEYS[4]), 0, 0, 0)
end
local total, reserved, overrun, oldest = 0, 0, 0, 0
local flat = call('HGETALL', KEYS[4])
for i = 1, #flat, 2 do
  local bucket_end = tonumber(flat[i])
  if bucket_end and bucket_end > now - window then
    local a, r, o = unpacked(FOUR, flat[i + 1])
    total, reserved, overrun = total + a, reserved + r, overrun + o
    if a ~= 0 and (oldest == 0 or bucket_end < oldest) then
      oldest = bucket_end
    end
  end
end
return 'U' .. pack('<i8i8i8i8i8i8', now, step, total, reserved, overrun, oldest)

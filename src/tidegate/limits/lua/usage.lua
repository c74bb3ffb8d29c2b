-- What does one counter hold? Writes nothing.
--
-- Looks at no more than OVERDUE_AT_MOST leases that are over: it must not hold up the server.
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
  -- By its score the lease of a slot is over, whether or not anybody has swept it.
  local ended = #call('ZRANGEBYSCORE', KEYS[4], '-inf', text(now))
  return 'U' .. pack('<i8i8i8i8i8i8', now, step, call('ZCARD', KEYS[4]) - ended, 0, 0, 0)
end

-- What leases that are over, and not swept yet, hold of this counter: used, no longer reserved.
local over = {}
if now >= time.due then
  local due = call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now), 'LIMIT', 0, OVERDUE_AT_MOST)
  for _, id in ipairs(due) do
    local kept = call('HGET', KEYS[1], id)
    if kept and kept ~= TOMBSTONE then
      local lease = cmsgpack.unpack(kept)
      for _, line in ipairs(lease[2] and lease[5] or {}) do
        if line[2] == KEYS[4] then
          over[line[3]] = (over[line[3]] or 0) + line[4]
        end
      end
    end
  end
end

local total, reserved, overrun, oldest = 0, 0, 0, 0
local flat = call('HGETALL', KEYS[4])
for i = 1, #flat, 2 do
  local bucket_end = tonumber(flat[i])
  if bucket_end and bucket_end > now - window then
    local a, r, o = unpacked(FOUR, flat[i + 1])
    total, overrun = total + a, overrun + o
    reserved = reserved + r - (over[bucket_end] or 0)
    if a ~= 0 and (oldest == 0 or bucket_end < oldest) then
      oldest = bucket_end
    end
  end
end
return 'U' .. pack('<i8i8i8i8i8i8', now, step, total, reserved, overrun, oldest)

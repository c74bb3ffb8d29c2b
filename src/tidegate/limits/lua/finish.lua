-- How does a lease end, settled or released?
--
-- KEYS: leases, their ids by due time, counters by the time they may be forgotten. ARGV: numbers
-- (time, bound, books), id, owner, how, then what was used of each unit.
-- how: "settle" replaces the estimate by what was used, "stand" leaves it, "release" gives all
-- back, "undo" does that too and, when the reservation has not come yet, keeps it from coming.
-- Answers 1 if this call changed the books.

local leases, due_index = KEYS[1], KEYS[2]
local id, how = ARGV[2], ARGV[4]
local kept = call('HGET', leases, id)
if not kept and how == 'undo' then
  -- It may come long after it was said: its bound says nothing, and the time it finds is not
  -- put into the books.
  local given = unpacked('<i8', ARGV[1])
  local time = time_of(call('HGET', leases, CLOCK), given, NONE)
  local due = time.now + TOMBSTONE_US
  call('ZADD', due_index, text(due), id)
  outlive(time, TOMBSTONE_US, leases, due_index, KEYS[3])
  time.due = math.min(time.due, due)
  time.now, time.moved = time.seen, time.moved - time.step
  call('HSET', leases, CLOCK, as_kept(time), id, TOMBSTONE)
end
if not kept or kept == TOMBSTONE then
  return 0
end
local lease = cmsgpack.unpack(kept)
if lease[1] ~= ARGV[3] then
  return 0
end
local used = {}
for i = 5, #ARGV, 2 do
  used[ARGV[i]] = tonumber(ARGV[i + 1])
end
for _, line in ipairs(lease[5]) do
  local actual = 0
  if how == 'stand' then
    actual = line[4]
  elseif how == 'settle' then
    actual = used[line[1]]
  end
  end_line(id, lease, line, actual)
end
call('HDEL', leases, id)
call('ZREM', due_index, id)
return 1

-- How does a lease end, settled or released?
--
-- KEYS: this lease, leases by due time. ARGV: id, owner, how, then what was used of each unit.
-- how: "settle" replaces the estimate by what was used, "stand" leaves it, "release" gives all
-- back, "undo" does that too and, when the reservation has not come yet, keeps it from coming.
-- Answers 1 if this call changed the books.

local kept = call('GET', KEYS[1])
if not kept or kept == TOMBSTONE then
  if not kept and ARGV[3] == 'undo' then
    call('SET', KEYS[1], TOMBSTONE, 'PX', TOMBSTONE_MS)
  end
  return 0
end
local lease = cmsgpack.unpack(kept)
if lease[1] ~= ARGV[2] then
  return 0
end
local used = {}
for i = 4, #ARGV, 2 do
  used[ARGV[i]] = tonumber(ARGV[i + 1])
end
for _, line in ipairs(lease[5]) do
  local actual = 0
  if ARGV[3] == 'stand' then
    actual = line[4]
  elseif ARGV[3] == 'settle' then
    actual = used[line[1]]
  end
  end_line(ARGV[1], lease, line, actual)
end
call('DEL', KEYS[1])
call('ZREM', KEYS[2], ARGV[1])
return 1

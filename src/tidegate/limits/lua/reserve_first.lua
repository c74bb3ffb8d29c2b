-- Do these charges fit, all of them? Then they are taken; a refusal writes nothing.
--
-- KEYS: leases, their ids by due time, counters by the time they may be forgotten, then one
-- counter for each charge. ARGV: numbers (time, bound, books, lease, then cap, window and amount
-- of each charge), id, owner, then the unit of each charge.
-- Answers an objection (see common.lua), or a letter and numbers, first now and how far this moved
-- it: H held already, U used before, T given up before it came, N place (never fits), R place wait (refused), G (granted).
-- R and G end with two numbers for each charge: what is used, and the end of the newest bucket
-- (G: of the bucket it was put in), 0 for none.

local leases, due_index, counters = KEYS[1], KEYS[2], KEYS[3]
local id, owner = ARGV[2], ARGV[3]
local given, bound, books, lease_us, at = unpacked('<i8i8i8i8', ARGV[1])
local known = call('HMGET', leases, CLOCK, id)
local time = time_of(known[1], given, bound)
local now = time.now

local objects = objection(time, books)
if objects then
  return objects
end

local function answer(letter, ...)
  return letter .. pack('<i8i8' .. string.rep('i8', select('#', ...)), now, time.step, ...)
end

if time.step ~= 0 then
  -- Also when this is refused: else time would stand still until something is granted.
  call('HSET', leases, CLOCK, as_kept(time))
end
if known[2] then
  if known[2] == TOMBSTONE then
    return answer('T')
  end
  local lease = cmsgpack.unpack(known[2])
  return answer((lease[1] == owner and lease[2]) and 'H' or 'U')
end

-- The usual case in a straight line: one window whose newest bucket stands, nothing is due, nothing
-- has left, it fits. reserve.lua does the same and all the rest, and making its functions takes
-- longer than this. What was looked up here is not looked up there again.
local looked = false
if #KEYS == 4 and ARGV[4] ~= CONCURRENT and now < time.due and now < time.idle then
  local cap, window, amount = unpacked('<i8i8i8', ARGV[1], at)
  local width = math.ceil(window / BUCKETS)
  local bucket_end = now - now % width + width
  local key, field, counts_until = KEYS[4], text(bucket_end), bucket_end + window
  looked = call('HMGET', key, 'h', field)
  if looked[1] and looked[2] then
    local used, oldest, newest, until_us = unpacked(FOUR, looked[1])
    local horizon, lasts = now - window, math.max(lease_us, counts_until - now)
    if newest > horizon and oldest > horizon and used + amount <= cap
      and now + lasts <= time.lives then
      local a, r, o, following = unpacked(FOUR, looked[2])
      used = used + amount
      call('HSET', key, 'h', pack(FOUR, used, oldest, newest, until_us),
        field, pack(FOUR, a + amount, r + amount, o, following))
      local due = now + lease_us
      call('ZADD', due_index, text(due), id)
      time.due = math.min(time.due, due)
      call('HSET', leases, CLOCK, as_kept(time), id, cmsgpack.pack({
        owner, true, due, counts_until, { { ARGV[4], key, bucket_end, amount } },
      }))
      return 'G' .. pack(FOUR, now, time.step, used, bucket_end)
    end
  end
end

-- What does one counter hold? Writes nothing.
--
-- KEYS: clock, counter. ARGV: time or '', bound or '', unit, window.
-- Answers "now moved total reserved overrun next", `next` being the end of the oldest bucket
-- with anything in it, 0 if there is none. For `concurrent` total is the number of slots taken.

local now, _, step = store_time(KEYS[1], ARGV[1], ARGV[2])
local head = text(now) .. ' ' .. text(step) .. ' '
if ARGV[3] == CONCURRENT then
  return head .. call('ZCARD', KEYS[2]) .. ' 0 0 0'
end
local horizon = now - tonumber(ARGV[4])
local total, reserved, overrun, oldest = 0, 0, 0, 0
local flat = call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
  local bucket_end = tonumber(flat[i])
  if bucket_end and bucket_end > horizon then
    local a, r, o = parsed(flat[i + 1])
    total, reserved, overrun = total + a, reserved + r, overrun + o
    if a ~= 0 and (oldest == 0 or bucket_end < oldest) then
      oldest = bucket_end
    end
  end
end
return head .. text(total) .. ' ' .. text(reserved) .. ' ' .. text(overrun) .. ' ' .. text(oldest)

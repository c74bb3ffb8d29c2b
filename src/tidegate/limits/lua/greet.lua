-- How many processes share this store? The asking one is among them for a while, or leaves.
--
-- KEYS: clock, members. ARGV: time or '', bound or '', member, how long it counts (0: it leaves).
-- Answers "now moved count".

local now, moved, step = store_time(KEYS[1], ARGV[1], ARGV[2])
local lasts = tonumber(ARGV[4])
if lasts > 0 then
  call('ZADD', KEYS[2], text(now + lasts), ARGV[3])
  call('PEXPIRE', KEYS[2], patience_ms(lasts))
else
  call('ZREM', KEYS[2], ARGV[3])
end
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now))
keep_time(KEYS[1], now, moved)
return text(now) .. ' ' .. text(step) .. ' ' .. call('ZCARD', KEYS[2])

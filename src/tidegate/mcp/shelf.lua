-- What becomes of the small documents of one kind?
--
-- KEYS: what all keys of the kind begin with.
-- ARGV: what to do, how long a document lives in ms, how many there may be, how many of a group,
-- how many changes are remembered, a number for a history that has none, then what it is done to.
--
-- A document is a hash of its own (v: value, g: group) that Redis lets go when its time is over.
-- `used` has its key and group by the turn of its last use, as has `g:` and the group: since all
-- documents of a kind live equally long, those that are gone are the first in both, and giving
-- way begins with them. `head` counts turns and changes; `news` has the changed keys by number.

local call = redis.call
local base = KEYS[1]
local op, live_ms, most, most_of_group, most_news, fresh, key = unpack(ARGV)
local USED, HEAD, NEWS = base .. ':used', base .. ':head', base .. ':news'

local function text(number)
  return string.format('%.0f', number)
end

local function next_of(counter)
  local number = (tonumber(call('HGET', HEAD, counter)) or 0) + 1
  call('HSET', HEAD, counter, text(number))
  return number
end

local function tell(changed)
  local number = next_of('told')
  call('ZADD', NEWS, text(number), changed)
  call('ZREMRANGEBYSCORE', NEWS, '-inf', text(number - most_news))
end

local function item(of)
  return base .. ':i:' .. of
end

local function members(of)
  return base .. ':g:' .. of
end

local function forget(member)
  local cut = string.find(member, '\n', 1, true)
  local of, group = string.sub(member, 1, cut - 1), string.sub(member, cut + 1)
  call('ZREM', USED, member)
  call('ZREM', members(group), of)
  local lived = call('DEL', item(of)) == 1
  if lived then
    tell(of)
  end
  return lived
end

local function make_room(group)
  if call('ZCARD', members(group)) >= tonumber(most_of_group) then
    forget(call('ZRANGE', members(group), 0, 0)[1] .. '\n' .. group)
  elseif call('ZCARD', USED) >= tonumber(most) then
    forget(call('ZRANGE', USED, 0, 0)[1])
  end
end

local function live(group)
  local turn = text(next_of('turn'))
  call('ZADD', USED, turn, key .. '\n' .. group)
  call('ZADD', members(group), turn, key)
  for _, name in ipairs({ item(key), USED, members(group), HEAD, NEWS }) do
    call('PEXPIRE', name, live_ms)
  end
end

if not call('HGET', HEAD, 'book') then
  call('HSET', HEAD, 'book', fresh)
  call('PEXPIRE', HEAD, live_ms)
end

if op == 'put' then
  local value, group = ARGV[8], ARGV[9]
  local before = call('HGET', item(key), 'g')
  if before then
    forget(key .. '\n' .. before)
  else
    make_room(group)
  end
  call('HSET', item(key), 'v', value, 'g', group)
  live(group)
  return 1
end

if op == 'news' then
  local book, told = call('HGET', HEAD, 'book'), tonumber(call('HGET', HEAD, 'told')) or 0
  local answer = { book, text(told) }
  local known, number = ARGV[7], tonumber(ARGV[8])
  if known ~= book or number > told or number < told - most_news then
    return answer
  end
  answer[3] = call('ZRANGEBYSCORE', NEWS, '(' .. text(number), '+inf')
  return answer
end

if op == 'group' then
  local answer = {}
  for _, of in ipairs(call('ZRANGE', members(key), 0, -1)) do
    local value = call('HGET', item(of), 'v')
    if value then
      answer[#answer + 1] = of
      answer[#answer + 1] = value
    end
  end
  return answer
end

local group = call('HGET', item(key), 'g')
if not group then
  return 0
end
if op == 'touch' then
  live(group)
  return 1
end
forget(key .. '\n' .. group)
return 1

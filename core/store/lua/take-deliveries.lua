-- Takes deliveries of a handle that are due, the first rank first, and leases them; what a lost worker held goes back before.
-- Needs email-prelude.lua
-- Needs bucket-prelude.lua
-- KEYS 1-6 as in email-prelude.lua, 7 bucket, 8 handle (hash)
-- ARGV 1 deliveries a turn, 2 last rank to look at, 3 real ms now, 4 real ms at which the leases end, 5 token, 6 instant, 7 domain ms,
--   8 tokens a second, 9 burst, 10 most deliveries for a handle of any weight
-- Returns {real ms at which there may be more ("" for unknown), [place, json, content, attempt, quota] for each delivery}.
local now, ms = tonumber(ARGV[3]), tonumber(ARGV[7])

for _, place in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', now, 'LIMIT', 0, 100)) do
  local id, n = string.match(place, '^(.*):(%d+)$')
  redis.call('ZREM', KEYS[6], place)
  local statuses, rank = unpack(redis.call('HMGET', KEYS[1] .. id, 'statuses', 'rank'))
  if statuses and split(statuses)[n + 1] == 'SENDING' then
    redis.call('HDEL', KEYS[1] .. id, 'token:' .. n)
    happened(id, tonumber(n), { type = 'DEFERRED', at = ARGV[6], ms = ms, more = ',"reason":"worker_lost"' })
    become(id, tonumber(n), 'DEFERRED')
    redis.call('ZADD', KEYS[4] .. rank, now, place)
  end
end

local weight = tonumber(redis.call('HGET', KEYS[8], 'mailWeight') or '1')
local due, most = {}, math.min(tonumber(ARGV[1]) * weight, tonumber(ARGV[10]))
for rank = 0, tonumber(ARGV[2]) do
  if #due < most then
    local places = redis.call('ZRANGEBYSCORE', KEYS[4] .. rank, '-inf', now, 'LIMIT', 0, most - #due)
    for _, place in ipairs(places) do due[#due + 1] = { place, rank } end
  end
end
local tokens, wait = 0, 0
if #due > 0 then tokens, wait = take_tokens(KEYS[7], tonumber(ARGV[8]), tonumber(ARGV[9]), #due) end

local taken = {}
for at = 1, tokens do
  local place, rank = unpack(due[at])
  local id, n = string.match(place, '^(.*):(%d+)$')
  redis.call('ZREM', KEYS[4] .. rank, place)
  local json, content, quota = unpack(redis.call('HMGET', KEYS[1] .. id, 'json', 'content', 'quota'))
  if json and content then
    local attempt = redis.call('HINCRBY', KEYS[1] .. id, 'attempt:' .. n, 1)
    redis.call('HSET', KEYS[1] .. id, 'token:' .. n, ARGV[5])
    redis.call('ZADD', KEYS[6], ARGV[4], place)
    happened(id, tonumber(n), { type = 'SENDING', at = ARGV[6], ms = ms, more = '' })
    become(id, tonumber(n), 'SENDING')
    taken[#taken + 1] = { place, json, content, attempt, quota }
  end
end

local next_look = ''
if tokens < #due then
  next_look = string.format('%.0f', now + wait)
else
  local places = { KEYS[6] }
  for rank = 0, tonumber(ARGV[2]) do places[#places + 1] = KEYS[4] .. rank end
  for _, key in ipairs(places) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if first and (next_look == '' or tonumber(first) < tonumber(next_look)) then next_look = string.format('%.0f', tonumber(first)) end
  end
end
return { next_look, unpack(taken) }

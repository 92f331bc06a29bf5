-- Leases due deliveries of a handle, the first rank first. Before that, returns expired leases to the queue.
-- Keys: those of email-prelude.lua, leases (zset), bucket, handle (hash)
-- Input: share (deliveries for a weight of 1), maxRank (the last rank to include), now and leaseEndsAt (real ms), token, instant, at (domain
--   ms), interval (µs until a new token), burst, max (deliveries for a handle of any weight)
-- Returns {real ms at which there may be more ("" if nothing waits), [name, json, content, attempt, quota] for each delivery}.
local now, at = input.now, input.at

for _, name in ipairs(redis.call('ZRANGEBYSCORE', keys.leases, '-inf', now, 'LIMIT', 0, 100)) do
  local id, n = string.match(name, '^(.*):(%d+)$')
  redis.call('ZREM', keys.leases, name)
  local statuses, rank = unpack(redis.call('HMGET', keys.messages .. id, 'statuses', 'rank'))
  if statuses and split(statuses)[n + 1] == 'SENDING' then
    redis.call('HDEL', keys.messages .. id, 'token:' .. n)
    addEvent(id, tonumber(n), { type = 'DEFERRED', at = input.instant, ms = at, more = ',"reason":"worker_lost"' })
    setStatus(id, tonumber(n), 'DEFERRED')
    redis.call('ZADD', keys.queues .. rank, now, name)
  end
end

local weight = tonumber(redis.call('HGET', keys.handle, 'mailWeight') or '1')
local due, most = {}, math.min(input.share * weight, input.max)
for rank = 0, input.maxRank do
  if #due < most then
    local names = redis.call('ZRANGEBYSCORE', keys.queues .. rank, '-inf', now, 'LIMIT', 0, most - #due)
    for _, name in ipairs(names) do due[#due + 1] = { name, rank } end
  end
end
local tokens, wait = 0, 0
if #due > 0 then tokens, wait = takeTokens(keys.bucket, input.interval, input.burst, #due) end

local taken = {}
for index = 1, tokens do
  local name, rank = unpack(due[index])
  local id, n = string.match(name, '^(.*):(%d+)$')
  redis.call('ZREM', keys.queues .. rank, name)
  local json, content, quota = unpack(redis.call('HMGET', keys.messages .. id, 'json', 'content', 'quota'))
  if json and content then
    local attempt = redis.call('HINCRBY', keys.messages .. id, 'attempt:' .. n, 1)
    redis.call('HSET', keys.messages .. id, 'token:' .. n, input.token)
    redis.call('ZADD', keys.leases, input.leaseEndsAt, name)
    addEvent(id, tonumber(n), { type = 'SENDING', at = input.instant, ms = at, more = '' })
    setStatus(id, tonumber(n), 'SENDING')
    taken[#taken + 1] = { name, json, content, attempt, quota }
  end
end

local nextPoll = ''
if tokens < #due then
  nextPoll = string.format('%.0f', now + wait)
else
  local queues = { keys.leases }
  for rank = 0, input.maxRank do queues[#queues + 1] = keys.queues .. rank end
  for _, key in ipairs(queues) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if first and (nextPoll == '' or tonumber(first) < tonumber(nextPoll)) then nextPoll = string.format('%.0f', tonumber(first)) end
  end
end
return { nextPoll, unpack(taken) }

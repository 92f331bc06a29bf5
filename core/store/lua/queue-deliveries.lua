-- Adds deliveries to their endpoints' queues once, and wakes the endpoints' senders, unless they are awake.
-- Keys: outbox, delivery (prefix of the keys of deliveries), and of each endpoint lists (its deliveries, zset by ms), queues (zset
--   by real ms when due), awake (the active sender, string)
-- Input: now (real ms), keepMs (of a delivery), callMs (validity of a wake-up call), endpoints, each with jobs (that wake it) and
--   deliveries (id, json, due: real ms, by which they are ordered)
-- Returns the number of added deliveries; those added before don't count.
local queued = 0
for at, endpoint in ipairs(input.endpoints) do
  local fresh = {}
  for _, delivery in ipairs(endpoint.deliveries) do
    if redis.call('SET', keys.delivery .. delivery.id, delivery.json, 'NX', 'PX', input.keepMs) then
      fresh[#fresh + 1] = delivery.due
      fresh[#fresh + 1] = delivery.id
    end
  end
  if #fresh > 0 then
    local list, queue = keys.lists[at], keys.queues[at]
    redis.call('ZADD', list, unpack(fresh))
    redis.call('ZREMRANGEBYSCORE', list, '-inf', input.now - input.keepMs)
    redis.call('PEXPIRE', list, input.keepMs)
    redis.call('ZADD', queue, unpack(fresh))
    if redis.call('SET', keys.awake[at], 'called', 'NX', 'PX', input.callMs) then outbox(keys.outbox, endpoint.jobs) end
  end
  queued = queued + #fresh / 2
end
return queued

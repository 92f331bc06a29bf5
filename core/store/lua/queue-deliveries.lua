-- Puts deliveries into their endpoints' queues once, and wakes their senders, unless one is awake.
-- Keys: outbox, delivery (what the keys of deliveries begin with), and of each endpoint lists (its deliveries, zset by ms), queues (zset
--   by real ms when due), awake (the active sender, string)
-- Input: now (real ms), keepMs (of a delivery), callMs (for which a call to wake up counts), endpoints, each with jobs (that wake it) and
--   deliveries (id, json, due: real ms, which put them in their order)
-- Returns how many were queued; those that were queued before are not.
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

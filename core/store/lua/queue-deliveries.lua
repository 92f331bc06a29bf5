-- Adds deliveries to their endpoint's queue once, and wakes the endpoint's sender, unless it is awake.
-- Keys: outbox, delivery (prefix of the keys of deliveries), list (the endpoint's deliveries, zset by ms), queue (zset by real ms when
--   due), awake (the active sender, string)
-- Input: now (real ms), keepMs (of a delivery), callMs (validity of a wake-up call), jobs (that wake the sender), deliveries (id, json,
--   due: real ms, by which they are ordered)
-- Returns nothing.
local fresh = {}
for _, delivery in ipairs(input.deliveries) do
  if redis.call('SET', keys.delivery .. delivery.id, delivery.json, 'NX', 'PX', input.keepMs) then
    fresh[#fresh + 1] = delivery.due
    fresh[#fresh + 1] = delivery.id
  end
end
if #fresh == 0 then return end
redis.call('ZADD', keys.list, unpack(fresh))
redis.call('ZREMRANGEBYSCORE', keys.list, '-inf', input.now - input.keepMs)
redis.call('PEXPIRE', keys.list, input.keepMs)
redis.call('ZADD', keys.queue, unpack(fresh))
if redis.call('SET', keys.awake, 'called', 'NX', 'PX', input.callMs) then outbox(keys.outbox, input.jobs) end

-- Puts deliveries into their endpoints' queues once, and wakes who sends them, unless somebody is awake.
-- KEYS 1 outbox, 2 what the keys of deliveries begin with, then for each endpoint: its deliveries (zset by ms), queue (zset by real ms
--   when due), the active sender (string)
-- ARGV 1 real ms now, 2 ms to keep a delivery, 3 ms for which a call to wake up counts, then for each endpoint: jobs that wake it, how many
--   deliveries, and for each of them: id, json, real ms when due, which puts them in their order
-- Returns how many were queued; those that were queued before are not.
local now, kept, counts, queued, at = ARGV[1], ARGV[2], ARGV[3], 0, 4
for endpoint = 3, #KEYS, 3 do
  local list, queue, awake = KEYS[endpoint], KEYS[endpoint + 1], KEYS[endpoint + 2]
  local jobs, last, fresh = ARGV[at], at + 1 + ARGV[at + 1] * 3, {}
  for delivery = at + 2, last, 3 do
    if redis.call('SET', KEYS[2] .. ARGV[delivery], ARGV[delivery + 1], 'NX', 'PX', kept) then
      fresh[#fresh + 1] = ARGV[delivery + 2]
      fresh[#fresh + 1] = ARGV[delivery]
    end
  end
  if #fresh > 0 then
    redis.call('ZADD', list, unpack(fresh))
    redis.call('ZREMRANGEBYSCORE', list, '-inf', now - kept)
    redis.call('PEXPIRE', list, kept)
    redis.call('ZADD', queue, unpack(fresh))
    if redis.call('SET', awake, 'called', 'NX', 'PX', counts) then outbox(KEYS[1], jobs) end
  end
  queued, at = queued + #fresh / 2, last + 1
end
return queued

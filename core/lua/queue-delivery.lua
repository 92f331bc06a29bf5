-- Puts deliveries of one event into their endpoints' queues once, and wakes who sends them, unless somebody is awake.
-- KEYS 1 outbox, then for each delivery: the delivery (string), deliveries of its endpoint (zset by ms), queue (zset by real ms when due),
--   who is awake (string)
-- ARGV 1 real ms now, 2 ms to keep a delivery, 3 ms for which a call to wake up counts, then for each delivery: json, delivery id, jobs
-- Returns how many were queued; those that were queued before are not.
local now, kept, counts, queued = ARGV[1], ARGV[2], ARGV[3], 0
for at = 0, (#KEYS - 1) / 4 - 1 do
  local delivery, list, queue, awake = KEYS[at * 4 + 2], KEYS[at * 4 + 3], KEYS[at * 4 + 4], KEYS[at * 4 + 5]
  local json, id, jobs = ARGV[at * 3 + 4], ARGV[at * 3 + 5], ARGV[at * 3 + 6]
  if redis.call('SET', delivery, json, 'NX', 'PX', kept) then
    redis.call('ZADD', list, now, id)
    redis.call('ZREMRANGEBYSCORE', list, '-inf', now - kept)
    redis.call('PEXPIRE', list, kept)
    redis.call('ZADD', queue, now, id)
    if redis.call('SET', awake, 'called', 'NX', 'PX', counts) then outbox(KEYS[1], jobs) end
    queued = queued + 1
  end
end
return queued

-- Leases deliveries of an endpoint that are due, for the one who is awake for it; who holds nothing and finds nothing goes to sleep.
-- KEYS 1 queue (zset by real ms when due), 2 who is awake (string)
-- ARGV 1 who asks, 2 real ms now, 3 real ms at which the leases end, 4 most deliveries, 5 deliveries that the asker still sends, 6 ms to stay awake
-- Returns {"busy"} when another is awake, {"asleep", real ms of the next one ("" for none)}, or {"taken", delivery id…}.
local awake = redis.call('GET', KEYS[2])
if awake and awake ~= 'called' and awake ~= ARGV[1] then return { 'busy' } end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[2], 'LIMIT', 0, ARGV[4])
if #due == 0 and ARGV[5] == '0' then
  redis.call('DEL', KEYS[2])
  return { 'asleep', redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or '' }
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[6])
for _, id in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[3], id) end
return { 'taken', unpack(due) }

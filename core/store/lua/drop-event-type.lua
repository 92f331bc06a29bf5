-- Removes an event type, its place in the list and its slug.
-- KEYS 1 event type, 2 list (zset), 3 catalog counter, 4 slugs (hash)   ARGV 1 id
-- Returns 1 when the event type was there, else 0.
-- Runs on a full Redis: it frees.
local slug = redis.call('HGET', KEYS[1], 'slug')
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[4], slug)
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return 1

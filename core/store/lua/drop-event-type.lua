-- Removes an event type, its list entry and its slug.
-- Keys: eventType, list (zset), counter (of the catalog), slugs (hash)
-- Input: eventTypeId
-- Returns 1 if the event type existed, else 0.
local slug = redis.call('HGET', keys.eventType, 'slug')
if redis.call('DEL', keys.eventType) == 0 then return 0 end
redis.call('HDEL', keys.slugs, slug)
redis.call('ZREM', keys.list, input.eventTypeId)
redis.call('INCR', keys.counter)
return 1

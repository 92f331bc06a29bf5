-- Writes an event type if its version is the expected one and its slug is free.
-- Keys: eventType (hash version, json, slug), list (zset), counter (of the catalog), slugs (hash slug -> id)
-- Input: version (expected; 0: it must not exist), json, eventTypeId, score (in the list), slug
-- Returns "written", "taken", or the stored version ("0" for none).
local version = redis.call('HGET', keys.eventType, 'version') or '0'
if tonumber(version) ~= input.version then return version end
local holder = redis.call('HGET', keys.slugs, input.slug)
if holder and holder ~= input.eventTypeId then return 'taken' end
local before = redis.call('HGET', keys.eventType, 'slug')
if before and before ~= input.slug then redis.call('HDEL', keys.slugs, before) end
redis.call('HSET', keys.slugs, input.slug, input.eventTypeId)
redis.call('HSET', keys.eventType, 'version', version + 1, 'json', input.json, 'slug', input.slug)
redis.call('ZADD', keys.list, 'NX', input.score, input.eventTypeId)
redis.call('INCR', keys.counter)
return 'written'

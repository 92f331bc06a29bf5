-- Writes an event type if its version is the expected one and no other has its slug.
-- KEYS 1 event type (hash version, json, slug), 2 list (zset), 3 catalog counter, 4 slugs (hash slug -> id)
-- ARGV 1 expected version (0: it must not exist), 2 json, 3 id, 4 list score, 5 slug
-- Returns "written", "taken", or the version that is there ("0" for none).
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version ~= ARGV[1] then return version end
local holder = redis.call('HGET', KEYS[4], ARGV[5])
if holder and holder ~= ARGV[3] then return 'taken' end
local before = redis.call('HGET', KEYS[1], 'slug')
if before and before ~= ARGV[5] then redis.call('HDEL', KEYS[4], before) end
redis.call('HSET', KEYS[4], ARGV[5], ARGV[3])
redis.call('HSET', KEYS[1], 'version', version + 1, 'json', ARGV[2], 'slug', ARGV[5])
redis.call('ZADD', KEYS[2], 'NX', ARGV[4], ARGV[3])
redis.call('INCR', KEYS[3])
return 'written'

-- Writes a record if its version is the expected one, and what that causes with it.
-- KEYS 1 record (hash version, json, status), 2 list (zset), 3 change counter, 4 outbox, 5 (if there is one) a further string
-- ARGV 1 expected version (0: the record must not exist), 2 json, 3 list member, 4 list score, 5 jobs, 6 status, 7 field of the
--   counter where it is one of a hash, else empty, 8 value of KEYS 5
-- Returns "written", or the version that is there ("0" for none).
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version ~= ARGV[1] then return version end
redis.call('HSET', KEYS[1], 'version', version + 1, 'json', ARGV[2], 'status', ARGV[6])
redis.call('ZADD', KEYS[2], 'NX', ARGV[4], ARGV[3])
bump(KEYS[3], ARGV[7])
if KEYS[5] then redis.call('SET', KEYS[5], ARGV[8]) end
outbox(KEYS[4], ARGV[5])
return 'written'

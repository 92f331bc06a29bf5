-- Deletes a rule: its record, out of the list, and the notes of its sends are kept for a while and then go.
-- KEYS 1 record (hash version, json), 2 list (zset), 3 change counter, 4 sends of the rule, 5 counts of the rule
-- ARGV 1 expected version, 2 json, 3 list member, 4 seconds
-- Returns "retired", or the version that is there ("0" for none).
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version ~= ARGV[1] then return version end
redis.call('HSET', KEYS[1], 'version', version + 1, 'json', ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[3])
bump(KEYS[3], '')
for _, key in ipairs({ KEYS[1], KEYS[4], KEYS[5] }) do redis.call('EXPIRE', key, ARGV[4]) end
return 'retired'

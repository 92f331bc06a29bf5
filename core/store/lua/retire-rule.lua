-- Deletes a rule: its record, out of the list, and the notes of its sends are kept for a while and then go.
-- Keys: rule (hash version, json), list (zset), counter (of changes), sends (of the rule), counts (of the rule)
-- Input: version (expected), json, ruleId, keepSeconds
-- Returns "retired", or the version that is there ("0" for none).
local version = redis.call('HGET', keys.rule, 'version') or '0'
if tonumber(version) ~= input.version then return version end
redis.call('HSET', keys.rule, 'version', version + 1, 'json', input.json)
redis.call('ZREM', keys.list, input.ruleId)
bump(keys.counter)
for _, key in ipairs({ keys.rule, keys.sends, keys.counts }) do redis.call('EXPIRE', key, input.keepSeconds) end
return 'retired'

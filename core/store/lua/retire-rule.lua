-- Deletes a rule and its list entry. The record and the states of its sends expire later.
-- Keys: rule (hash version, json), list (zset), sends (of the rule), counts (of the rule)
-- Input: version (expected), json, ruleId, keepSeconds
-- Returns "retired", or the stored version ("0" for none).
local version = redis.call('HGET', keys.rule, 'version') or '0'
if tonumber(version) ~= input.version then return version end
redis.call('HSET', keys.rule, 'version', version + 1, 'json', input.json)
redis.call('ZREM', keys.list, input.ruleId)
for _, key in ipairs({ keys.rule, keys.sends, keys.counts }) do redis.call('EXPIRE', key, input.keepSeconds) end
return 'retired'

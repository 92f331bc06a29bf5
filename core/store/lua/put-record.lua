-- Writes a record with its companions and jobs, if its version is the expected one.
-- Keys: record (hash version, json, status), list (zset), counter (of changes), outbox, companions (further strings)
-- Input: version (expected; 0: the record must not exist), json, member and score (in the list), jobs, status, field (of the counter,
--   if that is a hash), companions (their values)
-- Returns "written", or the stored version ("0" for none).
local version = redis.call('HGET', keys.record, 'version') or '0'
if tonumber(version) ~= input.version then return version end
redis.call('HSET', keys.record, 'version', version + 1, 'json', input.json, 'status', input.status)
redis.call('ZADD', keys.list, 'NX', input.score, input.member)
bump(keys.counter, input.field)
for at, key in ipairs(keys.companions) do redis.call('SET', key, input.companions[at]) end
outbox(keys.outbox, input.jobs)
return 'written'

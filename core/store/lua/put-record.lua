-- Writes a record with its companion and jobs, if its version is the expected one and its slug is free.
-- Keys: record (hash version, json, status, slug), list (zset), counter (of changes; the list for a kind that counts none), slugs (hash
--   slug -> member), outbox, companion (a further string)
-- Input: version (expected; 0: the record must not exist), json, member and score (in the list), jobs, status, slug (absent for a record
--   without one), field (of the counter, if that is a hash), companion (its value; empty for none), max (records of the list,
--   for a new one; absent: any number)
-- Returns "written", "taken" if another record has the slug, "full", or the stored version ("0" for none).
local version, before = unpack(redis.call('HMGET', keys.record, 'version', 'slug'))
if tonumber(version or 0) ~= input.version then return version or '0' end
if input.max and input.version == 0 and redis.call('ZCARD', keys.list) >= input.max then return 'full' end
if input.slug then
  local holder = redis.call('HGET', keys.slugs, input.slug)
  if holder and holder ~= input.member then return 'taken' end
  if before and before ~= input.slug then redis.call('HDEL', keys.slugs, before) end
  redis.call('HSET', keys.slugs, input.slug, input.member)
  redis.call('HSET', keys.record, 'slug', input.slug)
end
redis.call('HSET', keys.record, 'version', input.version + 1, 'json', input.json, 'status', input.status)
redis.call('ZADD', keys.list, 'NX', input.score, input.member)
if keys.counter ~= keys.list then bump(keys.counter, input.field) end
if input.companion ~= '' then redis.call('SET', keys.companion, input.companion) end
outbox(keys.outbox, input.jobs)
return 'written'

-- Removes a record, its list entry and its slug.
-- Keys: record, list (zset), counter (of changes; the list for a kind that counts none), slugs (hash slug -> member)
-- Input: member (of the list), field (of the counter, if that is a hash)
-- Returns 1 if the record existed, else 0.
local slug = redis.call('HGET', keys.record, 'slug')
if redis.call('DEL', keys.record) == 0 then return 0 end
if slug then redis.call('HDEL', keys.slugs, slug) end
redis.call('ZREM', keys.list, input.member)
if keys.counter ~= keys.list then bump(keys.counter, input.field) end
return 1

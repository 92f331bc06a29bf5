-- Removes a record and its list entry.
-- Keys: record, list (zset), counter (of changes)
-- Input: member (of the list), field (of the counter, if that is a hash)
-- Returns 1 if the record existed, else 0.
if redis.call('DEL', keys.record) == 0 then return 0 end
redis.call('ZREM', keys.list, input.member)
bump(keys.counter, input.field)
return 1

-- Removes a record and its place in the list, and writes what that causes.
-- Keys: record, list (zset), counter (of changes), outbox
-- Input: member (of the list), jobs, field (of the counter where it is one of a hash)
-- Returns 1 when the record was there, else 0.
if redis.call('DEL', keys.record) == 0 then return 0 end
redis.call('ZREM', keys.list, input.member)
bump(keys.counter, input.field)
outbox(keys.outbox, input.jobs)
return 1

-- Removes a tag from a dirty shard unless it was marked again since.
-- Keys: shard
-- Input: tag, score (that was read)
-- Returns 1 when removed, else 0.
if redis.call('ZSCORE', keys.shard, input.tag) == input.score then return redis.call('ZREM', keys.shard, input.tag) end
return 0

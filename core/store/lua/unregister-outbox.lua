-- Removes a tag from its shard unless it was registered again since.
-- Keys: shard
-- Input: tag, score (as read)
-- Returns 1 if removed, else 0.
if redis.call('ZSCORE', keys.shard, input.tag) == input.score then return redis.call('ZREM', keys.shard, input.tag) end
return 0

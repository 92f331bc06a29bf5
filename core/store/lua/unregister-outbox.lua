-- Removes a tag from its shard unless it was registered again since.
-- Keys: shard
-- Input: tag, score (as read)
-- Returns nothing.
if redis.call('ZSCORE', keys.shard, input.tag) == input.score then redis.call('ZREM', keys.shard, input.tag) end

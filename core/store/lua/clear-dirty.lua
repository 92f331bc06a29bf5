-- Removes a tag from a dirty shard unless it was marked again since.
-- KEYS 1 shard   ARGV 1 tag, 2 score that was read
-- Returns 1 when removed, else 0.
-- Runs on a full Redis: it frees.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0

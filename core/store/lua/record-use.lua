-- Records the use of a session or a token. Doesn't restore a revoked one.
-- Keys: hash (of a user's sessions, or of a token)
-- Input: used (the field of what was used), field (of its last use), now (real ms)
-- Returns nothing.
if redis.call('HEXISTS', keys.hash, input.used) == 1 then redis.call('HSET', keys.hash, input.field, input.now) end

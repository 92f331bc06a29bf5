-- Records the use of a session. Doesn't restore a revoked one.
-- Keys: sessions (of the user; hash)
-- Input: sessionId, now (real ms)
-- Returns "noted", or "gone" if the session doesn't exist.
if redis.call('HEXISTS', keys.sessions, input.sessionId) == 0 then return 'gone' end
redis.call('HSET', keys.sessions, 'used:' .. input.sessionId, input.now)
return 'noted'

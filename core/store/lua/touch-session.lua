-- Records the use of a session. Doesn't restore a revoked one.
-- Keys: sessions (of the user; hash)
-- Input: sessionId, now (real ms)
-- Returns nothing.
if redis.call('HEXISTS', keys.sessions, input.sessionId) == 1 then
  redis.call('HSET', keys.sessions, 'used:' .. input.sessionId, input.now)
end

-- Notes that a session was used. Never makes one that was revoked meanwhile.
-- Keys: sessions (of the user; hash)
-- Input: sessionId, now (real ms)
-- Returns "noted", or "gone" when there is no such session.
if redis.call('HEXISTS', keys.sessions, input.sessionId) == 0 then return 'gone' end
redis.call('HSET', keys.sessions, 'used:' .. input.sessionId, input.now)
return 'noted'

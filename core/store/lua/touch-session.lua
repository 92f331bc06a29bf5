-- Notes that a session was used. Never makes one that was revoked meanwhile.
-- KEYS 1 sessions of the user (hash)   ARGV 1 session id, 2 real ms now
-- Returns "noted", or "gone" when there is no such session.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 'gone' end
redis.call('HSET', KEYS[1], 'used:' .. ARGV[1], ARGV[2])
return 'noted'

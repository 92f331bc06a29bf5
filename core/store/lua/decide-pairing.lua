-- Decides a pairing attempt, once.
-- KEYS 1 attempt   ARGV 1 "authorised" or "denied", 2 user id, 3 the user's email or empty
-- Returns "decided", "unknown" when there is no such attempt, or "late" when it was decided before.
local status = redis.call('HGET', KEYS[1], 'status')
if not status then return 'unknown' end
if status ~= 'pending' then return 'late' end
redis.call('HSET', KEYS[1], 'status', ARGV[1], 'user', ARGV[2], 'email', ARGV[3])
return 'decided'

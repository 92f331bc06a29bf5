-- Records the decision on a pairing attempt, once.
-- Keys: attempt
-- Input: status ("authorised" or "denied"), userId, email (of the user, or empty)
-- Returns "decided", "unknown" if the attempt doesn't exist, or "late" if it was decided before.
local status = redis.call('HGET', keys.attempt, 'status')
if not status then return 'unknown' end
if status ~= 'pending' then return 'late' end
redis.call('HSET', keys.attempt, 'status', input.status, 'user', input.userId, 'email', input.email)
return 'decided'

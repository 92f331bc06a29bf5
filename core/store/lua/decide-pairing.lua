-- Records the decision on a pairing attempt, once. Who has allowed it can still deny it.
-- Keys: attempt
-- Input: status ("authorised" or "denied"), userId, email (of the user, or empty)
-- Returns "decided", "unknown" if the attempt doesn't exist, or "late" if it was decided before.
local status, user = unpack(redis.call('HMGET', keys.attempt, 'status', 'user'))
if not status then return 'unknown' end
local withdraws = status == 'authorised' and input.status == 'denied' and user == input.userId
if status ~= 'pending' and not withdraws then return 'late' end
redis.call('HSET', keys.attempt, 'status', input.status, 'user', input.userId, 'email', input.email)
return 'decided'

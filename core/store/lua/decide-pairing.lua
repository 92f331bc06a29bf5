-- Records the decision on a pairing attempt, once. Who has allowed it can still deny it.
-- Keys: attempt
-- Input: status ("authorised" or "denied"), userId, email (of the user, or empty)
-- Returns "decided", "unknown" if the attempt doesn't exist or is redeemed, or "late" if it was decided before. A denial
-- removes a redeemed attempt, so that its session is refused if it has not started yet.
local status, user = unpack(redis.call('HMGET', keys.attempt, 'status', 'user'))
local withdraws = input.status == 'denied' and user == input.userId
if status == 'redeemed' and withdraws then return redis.call('DEL', keys.attempt) and 'decided' end
if not status or status == 'redeemed' then return 'unknown' end
if status ~= 'pending' and not (status == 'authorised' and withdraws) then return 'late' end
redis.call('HSET', keys.attempt, 'status', input.status, 'user', input.userId, 'email', input.email)
return 'decided'

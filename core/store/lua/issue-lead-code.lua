-- Starts a lead's verification code, or prolongs the one that is still good: mails of requests at once may arrive in any order.
-- Keys: code (hash round, wrong, used), lead
-- Input: round (of a new code), version (of the lead as read), ttlMs
-- Returns the round of the code, or "changed" if the lead has another version by now.
if tonumber(redis.call('HGET', keys.lead, 'version') or 0) ~= input.version then return 'changed' end
if redis.call('HEXISTS', keys.code, 'used') == 1 then redis.call('DEL', keys.code) end
redis.call('HSETNX', keys.code, 'round', input.round)
redis.call('HSET', keys.code, 'wrong', 0)
redis.call('PEXPIRE', keys.code, input.ttlMs)
return redis.call('HGET', keys.code, 'round')

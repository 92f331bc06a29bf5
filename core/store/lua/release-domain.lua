-- Removes an account's claim on a domain, its ownership and its email identity. Claims of other accounts stay.
-- Keys: domain (hash), identity (of the account; hash)
-- Input: account
-- Returns 1 if it had a claim, else 0.
local had = redis.call('HDEL', keys.domain, 'claim:' .. input.account)
redis.call('DEL', keys.identity)
if redis.call('HGET', keys.domain, 'account') == input.account then
  redis.call('HDEL', keys.domain, 'account', 'handle', 'owned')
end
-- Without a claim only the time of the first one is left.
if redis.call('HLEN', keys.domain) == 1 then redis.call('DEL', keys.domain) end
return had

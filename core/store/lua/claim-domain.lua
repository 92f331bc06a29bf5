-- Notes that an account attaches a domain, or has proven that it is the account's own. Claims stand side by side until one of
-- them is proven; from then on the domain is nobody else's.
-- KEYS 1 domain (hash)   ARGV 1 account, 2 handle ('' for none), 3 instant, 4 'claimed' or 'proven'
-- Returns "taken" when another account has proven it, else "claimed" or "proven", as the domain now is for this account.
local holder = redis.call('HMGET', KEYS[1], 'account', 'owned')
local mine = holder[1] == ARGV[1]
if holder[2] == '1' and not mine then return 'taken' end
redis.call('HSET', KEYS[1], 'claim:' .. ARGV[1], ARGV[2])
redis.call('HSETNX', KEYS[1], 'createdAt', ARGV[3])
-- The fields account and handle name the owner or, while there is none, the first to attach the domain.
if mine or not holder[1] or ARGV[4] == 'proven' then
  redis.call('HSET', KEYS[1], 'account', ARGV[1], 'handle', ARGV[2])
end
if ARGV[4] == 'proven' then redis.call('HSET', KEYS[1], 'owned', '1') end
return (ARGV[4] == 'proven' or (mine and holder[2] == '1')) and 'proven' or 'claimed'

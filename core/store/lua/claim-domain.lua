-- Records that an account attaches a domain, or has proven its ownership. Several accounts may claim a domain until one of
-- them proves it; from then on the domain belongs to that account alone.
-- Keys: domain (hash)
-- Input: account, handle (absent: that of an earlier claim stays), instant, isProven
-- Returns {"taken"} if another account has proven it, else {"claimed"} or {"proven"}, the domain's state for this account, with
-- the handle of its claim, '' for none, and 1 if the claim is its first, else 0.
local claim = 'claim:' .. input.account
local account, owned, earlier = unpack(redis.call('HMGET', keys.domain, 'account', 'owned', claim))
local mine = account == input.account
if owned == '1' and not mine then return { 'taken' } end
local handle = input.handle or earlier or ''
redis.call('HSET', keys.domain, claim, handle)
redis.call('HSETNX', keys.domain, 'createdAt', input.instant)
-- The fields account and handle name the owner or, before a proof, the first account to attach the domain.
if mine or not account or input.isProven then
  redis.call('HSET', keys.domain, 'account', input.account, 'handle', handle)
end
if input.isProven then redis.call('HSET', keys.domain, 'owned', '1') end
return { (input.isProven or (mine and owned == '1')) and 'proven' or 'claimed', handle, earlier and 0 or 1 }

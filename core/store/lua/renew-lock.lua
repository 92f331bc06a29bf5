-- Renews a lock, or releases it, if it is still the caller's.
-- Keys: lock (string, its holder)
-- Input: holder, leaseMs (from now; 0 to release it)
-- Returns "renewed", or "lost" if the lock has expired or is another's.
if redis.call('GET', keys.lock) ~= input.holder then return 'lost' end
redis.call('PEXPIRE', keys.lock, input.leaseMs)
return 'renewed'

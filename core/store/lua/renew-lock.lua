-- Renews a lock, if it is still the caller's.
-- KEYS 1 lock (string, its holder)
-- ARGV 1 holder, 2 ms from now
-- Returns "renewed", or "lost" where the lock has ended or is another's.
-- Runs on a full Redis: it adds nothing.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'renewed'

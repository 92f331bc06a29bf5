-- Gives a lock back, if it is still the caller's.
-- KEYS 1 lock (string, its holder)
-- ARGV 1 holder
-- Returns "released", or "lost" where the lock had ended before.
-- Runs on a full Redis: it frees.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])
return 'released'

-- Releases a lock, if it is still the caller's.
-- Keys: lock (string, its holder)
-- Input: holder
-- Returns "released", or "lost" if the lock had expired.
if redis.call('GET', keys.lock) ~= input.holder then return 'lost' end
redis.call('DEL', keys.lock)
return 'released'

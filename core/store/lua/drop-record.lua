-- Removes a record and its place in the list, and writes what that causes.
-- KEYS 1 record, 2 list (zset), 3 change counter, 4 outbox   ARGV 1 list member, 2 jobs, 3 field of the
--   counter where it is one of a hash, else empty
-- Returns 1 when the record was there, else 0.
-- Runs on a full Redis: it frees more than its jobs take.
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
bump(KEYS[3], ARGV[3])
outbox(KEYS[4], ARGV[2])
return 1

-- Gives a member of a line another place, unless its place has changed meanwhile: who moves it has it.
-- KEYS 1 line (zset)   ARGV 1 member, 2 the place that it is known to have, 3 its place from now on
-- Returns 1 when it was moved, else 0.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1

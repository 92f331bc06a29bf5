-- Moves a claimed lane to the time of its next turn, unless its position has changed since the claim.
-- KEYS 1 line (zset lane -> real µs of its next turn)   ARGV 1 lane, 2 its position at the claim, 3 its next position
-- Returns 1 if the lane was moved, else 0.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1

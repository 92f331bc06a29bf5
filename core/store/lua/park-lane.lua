-- Makes a claimed lane due later, unless its position has changed since the claim.
-- Keys: lanes (zset lane -> real µs when it is due)
-- Input: lane, position (at the claim), nextUs (its next position)
-- Returns 1 if the lane was moved, else 0.
if redis.call('ZSCORE', keys.lanes, input.lane) ~= input.position then return 0 end
redis.call('ZADD', keys.lanes, string.format('%.0f', input.nextUs), input.lane)
return 1

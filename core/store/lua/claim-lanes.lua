-- Claims the lanes that are due, longest waiting first, and moves them to the end of the queue.
-- Keys: lanes (zset lane -> real µs when it is due)
-- Input: limit, leaseUs
-- Returns the number of due lanes, then each claimed lane and its new position.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
local reply = { redis.call('ZCOUNT', keys.lanes, '-inf', now) }
for at, lane in ipairs(redis.call('ZRANGEBYSCORE', keys.lanes, '-inf', now, 'LIMIT', 0, input.limit)) do
  local position = string.format('%.0f', now + input.leaseUs + at - 1)
  redis.call('ZADD', keys.lanes, position, lane)
  reply[#reply + 1] = lane
  reply[#reply + 1] = position
end
return reply

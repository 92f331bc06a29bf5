-- Claims the lanes that are due, those that have waited longest first, and moves them to the end of the line.
-- KEYS 1 line (zset lane -> real µs of its next turn)   ARGV 1 most, 2 µs of the lease
-- Returns how many lanes are due, then each claimed lane and its new position.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local turns = { redis.call('ZCOUNT', KEYS[1], '-inf', now) }
for at, lane in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local position = string.format('%.0f', now + ARGV[2] + at - 1)
  redis.call('ZADD', KEYS[1], position, lane)
  turns[#turns + 1] = lane
  turns[#turns + 1] = position
end
return turns

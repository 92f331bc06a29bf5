-- Names the handles whose turn it is, those who have waited longest first, and puts them at the end of the line.
-- KEYS 1 line (zset handle -> real µs of its next turn)   ARGV 1 most
-- Returns how many wait, then handle and its new place in the line, for each.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local waiting = redis.call('ZCOUNT', KEYS[1], '-inf', now)
local turns = { waiting }
for at, handle in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local place = string.format('%.0f', now + at - 1)
  redis.call('ZADD', KEYS[1], place, handle)
  turns[#turns + 1] = handle
  turns[#turns + 1] = place
end
return turns

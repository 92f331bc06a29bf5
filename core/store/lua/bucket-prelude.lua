-- Prelude of the scripts that take tokens from a bucket. Its key contains the real µs (of TIME, so that all processes share one clock)
-- at which the bucket is full again; a full bucket needs no key, and a key expires 10 s after that.
-- takeTokens(key, µs until a new token, burst, most) takes up to `most` tokens. Returns the number taken, and the ms until the next
-- token if that is fewer. A refusal writes nothing. '%d' writes whole numbers, for a fraction of what '%.0f' costs.
local function takeTokens(key, interval, burst, most)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local full = math.max(now, tonumber(redis.call('GET', key)) or 0)
  local tokens = burst - (full - now) / interval
  local taken = math.max(0, math.min(most, math.floor(tokens)))
  if taken > 0 then
    full = full + taken * interval
    redis.call('SET', key, string.format('%d', full), 'PX', string.format('%d', (full - now) / 1000 + 10000))
  end
  return taken, taken < most and math.ceil((1 - tokens + taken) * interval / 1000) or 0
end

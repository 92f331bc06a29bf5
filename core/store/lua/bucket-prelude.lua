-- Prelude of the scripts that take tokens from a bucket: a hash of tokens and real ms (from TIME, so that all processes share one clock).
-- take_tokens(key, tokens per second, burst, most) takes up to that many. Returns the number taken, and the ms until the next token if
-- that is fewer. A full bucket needs no key: the key expires 10 s after the bucket is full again. A refusal writes nothing.
local function take_tokens(key, rate, burst, most)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  local state = redis.call('HMGET', key, 'tokens', 'at')
  local tokens = math.min(burst, (tonumber(state[1]) or burst) + (now - (tonumber(state[2]) or now)) * rate / 1000)
  local taken = math.max(0, math.min(most, math.floor(tokens)))
  tokens = tokens - taken
  if taken > 0 then
    redis.call('HSET', key, 'tokens', tokens, 'at', string.format('%.3f', now))
    redis.call('PEXPIRE', key, math.ceil((burst - tokens) * 1000 / rate) + 10000)
  end
  return taken, taken < most and math.ceil((1 - tokens) * 1000 / rate) or 0
end

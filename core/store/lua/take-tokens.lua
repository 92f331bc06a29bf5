-- Takes tokens of one bucket, at real time (TIME), so that all processes share one clock.
-- Needs bucket-prelude.lua
-- KEYS 1 bucket   ARGV 1 tokens a second, 2 burst, 3 most tokens to take
-- Returns how many were taken, and the milliseconds until the next one where that is fewer.
return { take_tokens(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])) }

-- Takes one token of a bucket, at real time (TIME), so that all processes share one clock.
-- Needs bucket-prelude.lua
-- KEYS 1 bucket   ARGV 1 tokens a second, 2 burst
-- Returns 0 when taken, else the milliseconds until the next token.
local _, wait = take_tokens(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), 1)
return wait

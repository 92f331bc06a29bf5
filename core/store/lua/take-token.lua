-- Takes one token from a bucket.
-- Keys: bucket
-- Input: interval (µs until a new token), burst
-- Returns 0, or the ms until the next token if there is none.
local _, wait = takeTokens(keys.bucket, input.interval, input.burst, 1)
return wait

-- Takes tokens from one bucket, at real time (TIME), so that all processes share one clock.
-- Keys: bucket
-- Input: rate (tokens a second), burst, most (tokens to take)
-- Returns the number taken, and the ms until the next token if that is fewer.
return { take_tokens(keys.bucket, input.rate, input.burst, input.most) }

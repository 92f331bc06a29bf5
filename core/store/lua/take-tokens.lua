-- Takes tokens of one bucket, at real time (TIME), so that all processes share one clock.
-- Keys: bucket
-- Input: rate (tokens a second), burst, most (tokens to take)
-- Returns how many were taken, and the milliseconds until the next one where that is fewer.
return { take_tokens(keys.bucket, input.rate, input.burst, input.most) }

-- Takes tokens from one bucket.
-- Keys: bucket
-- Input: interval (µs until a new token), burst, most (tokens to take)
-- Returns the number taken, and the ms until the next token if that is fewer.
return { take_tokens(keys.bucket, input.interval, input.burst, input.most) }

-- Adds a personal access token to the list of its user, unless that is full.
-- Keys: tokens (of the user; zset by creation)
-- Input: tokenId, now (real ms), max (tokens of a user)
-- Returns "listed" or "full".
if redis.call('ZCARD', keys.tokens) >= input.max then return 'full' end
redis.call('ZADD', keys.tokens, input.now, input.tokenId)
return 'listed'

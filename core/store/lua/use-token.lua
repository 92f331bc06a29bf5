-- Finds a personal access token and notes that it was used, at most once in a while. Never makes one that was revoked meanwhile.
-- Keys: token
-- Input: digest (SHA-256 of the secret, bytes), now (real ms), intervalMs (between two notes)
-- Returns {user, scopes}, or nothing when there is no such token.
local digest, user, scopes, used = unpack(redis.call('HMGET', keys.token, 'digest', 'user', 'scopes', 'used'))
if digest ~= input.digest then return {} end
if input.now - tonumber(used or 0) >= input.intervalMs then redis.call('HSET', keys.token, 'used', input.now) end
return { user, scopes }

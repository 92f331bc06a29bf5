-- Finds a personal access token and records its use, at most once per interval. Doesn't restore a revoked one.
-- Keys: token
-- Input: digest (SHA-256 of the secret, bytes), now (real ms), intervalMs (between two records of use)
-- Returns {user, scopes}, or nothing if the token doesn't exist.
local digest, user, scopes, used = unpack(redis.call('HMGET', keys.token, 'digest', 'user', 'scopes', 'used'))
if digest ~= input.digest then return {} end
if input.now - tonumber(used or 0) >= input.intervalMs then redis.call('HSET', keys.token, 'used', input.now) end
return { user, scopes }

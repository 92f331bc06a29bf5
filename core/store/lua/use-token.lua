-- Finds a personal access token and notes that it was used, at most once in a while. Never makes one that was revoked meanwhile.
-- KEYS 1 token   ARGV 1 SHA-256 of the secret (bytes), 2 real ms now, 3 ms for which the last note is good enough
-- Returns {user, scopes}, or nothing when there is no such token.
-- Runs on a full Redis: it writes over what is there.
local digest, user, scopes, used = unpack(redis.call('HMGET', KEYS[1], 'digest', 'user', 'scopes', 'used'))
if digest ~= ARGV[1] then return {} end
if tonumber(ARGV[2]) - tonumber(used or 0) >= tonumber(ARGV[3]) then redis.call('HSET', KEYS[1], 'used', ARGV[2]) end
return { user, scopes }

-- Uses a refresh token and replaces it by the next one. Reuse of a replaced token ends the session, since two parties have it; the
-- previous token is accepted for a grace period, since its response may have been lost.
-- Keys: grant (hash round, at, json), sessions (of the user; hash)
-- Input: sessionId, round (of the token), now and expiresAt (real ms), graceMs, maxMs (from the start of the session to its end, however
--   often it is refreshed)
-- Returns the round of the next token, and the real ms at which the session ends; nothing for a token that is over or was used before.
local round, at = unpack(redis.call('HMGET', keys.grant, 'round', 'at'))
local session = redis.call('HGET', keys.sessions, input.sessionId)
if not round or not session then
  redis.call('DEL', keys.grant)
  return {}
end
local behind = tonumber(round) - input.round
if behind < 0 then return {} end
if behind > 1 or (behind == 1 and input.now - tonumber(at) > input.graceMs) then
  redis.call('HDEL', keys.sessions, input.sessionId, 'used:' .. input.sessionId)
  redis.call('DEL', keys.grant)
  return {}
end
local stored = cjson.decode(session)
if behind == 1 then return { round, string.format('%.0f', stored.expiresAt) } end
stored.expiresAt = math.min(input.expiresAt, stored.createdAt + input.maxMs)
if stored.expiresAt <= input.now then return {} end
local ends = string.format('%.0f', stored.expiresAt)
redis.call('HSET', keys.sessions, input.sessionId, cjson.encode(stored), 'used:' .. input.sessionId, input.now)
if redis.call('PEXPIRETIME', keys.sessions) < stored.expiresAt then redis.call('PEXPIREAT', keys.sessions, ends) end
redis.call('HSET', keys.grant, 'round', input.round + 1, 'at', string.format('%.0f', input.now))
redis.call('PEXPIREAT', keys.grant, ends)
return { tostring(input.round + 1), ends }

-- Prelude of the scripts that suppress. Keys of those scripts: suppressed (hash), suppressions (by time; zset). suppress(digest,
-- suppression, at) suppresses an address from domain ms `at` on, by JSON. The first suppression stays, but an unsubscription, which its
-- recipient may undo, gives way to one that only the owner may remove. Returns the stored one.
local function suppress(digest, suppression, at)
  local stored = redis.call('HGET', keys.suppressed, digest)
  local isFinal = stored and cjson.decode(stored).source ~= 'UNSUBSCRIBE'
  if isFinal or (stored and cjson.decode(suppression).source == 'UNSUBSCRIBE') then return stored end
  redis.call('HSET', keys.suppressed, digest, suppression)
  redis.call('ZADD', keys.suppressions, at, digest)
  return suppression
end

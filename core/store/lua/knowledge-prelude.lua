-- Prelude of the scripts that count languages. countLanguage(key, language, change) counts a handle's chunks by language in the field
-- languages of its knowledge hash, a JSON object without zero counts. Chunks of earlier versions have no language. Returns nothing.
local function countLanguage(key, language, change)
  if not language or change == 0 then return end
  local counts = cjson.decode(redis.call('HGET', key, 'languages') or '{}')
  local count = (counts[language] or 0) + change
  counts[language] = count > 0 and count or nil
  redis.call('HSET', key, 'languages', cjson.encode(counts))
end

-- Prelude of the scripts that change a document's chunks. Needs the key knowledge and the inputs documentId and prefix (of its chunk keys).
-- countLanguage(language, change) counts a handle's chunks by language in the field languages, a JSON object without zero counts; chunks of
-- earlier versions have no language. dropChunks(first) uncounts all of the document's chunks and removes those from a number on.
-- Returns nothing.
local field = 'd:' .. input.documentId

local function countLanguage(language, change)
  if not language or change == 0 then return end
  local counts = cjson.decode(redis.call('HGET', keys.knowledge, 'languages') or '{}')
  local count = (counts[language] or 0) + change
  counts[language] = count > 0 and count or nil
  redis.call('HSET', keys.knowledge, 'languages', cjson.encode(counts))
end

local function dropChunks(first)
  local count = tonumber(string.match(redis.call('HGET', keys.knowledge, field) or '', ':(%d+)$')) or 0
  countLanguage(redis.call('HGET', input.prefix .. '0', 'language'), -count)
  for part = first, count - 1 do redis.call('DEL', input.prefix .. part) end
end

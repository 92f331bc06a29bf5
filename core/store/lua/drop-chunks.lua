-- Removes a document with its chunks and its list entry, and bumps the handle's version.
-- Keys: document, knowledge, list
-- Input: documentId, prefix (of its chunk keys)
-- Returns 1 if the document existed, else 0.
local field = 'd:' .. input.documentId
local count = tonumber(string.match(redis.call('HGET', keys.knowledge, field) or '', ':(%d+)$')) or 0
countLanguage(keys.knowledge, redis.call('HGET', input.prefix .. '0', 'language'), -count)
for place = 0, count - 1 do redis.call('DEL', input.prefix .. place) end
redis.call('HDEL', keys.knowledge, field, 's:' .. input.documentId)
redis.call('HINCRBY', keys.knowledge, 'version', 1)
redis.call('ZREM', keys.list, input.documentId)
return redis.call('DEL', keys.document)

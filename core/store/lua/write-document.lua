-- Writes a document, if its hash is given, and its chunks; lists it, and bumps the handle's version. A repetition after a lost connection
-- changes nothing.
-- Keys: document, knowledge, list, outbox
-- Input: earlier (the revision that it must have by now, "" for none), revision (of what is written), documentId, createdAt (ms), prefix (of
--   its chunk keys), status, jobs, language, hashSize (number of values of its hash, 0 if it stays), sizes (those of each chunk), values
--   (fields and values, alternating: of the hash, then of each chunk)
-- Returns "written", or "changed" if the document has another revision by now.
local current = redis.call('HGET', keys.document, 'revision') or ''
if current ~= input.earlier then return current == input.revision and 'written' or 'changed' end
if input.hashSize > 0 then
  redis.call('DEL', keys.document)
  redis.call('HSET', keys.document, unpack(input.values, 1, input.hashSize))
end
local count = #input.sizes
dropChunks(count)
local at = input.hashSize + 1
for part, size in ipairs(input.sizes) do
  local key = input.prefix .. (part - 1)
  redis.call('HDEL', key, 'vector', 'model', 'dimensions')
  -- One command, since a search module indexes the chunk again after each command that writes it.
  redis.call('HSET', key, unpack(input.values, at, at + size - 1))
  at = at + size
end
countLanguage(input.language, count)
redis.call('ZADD', keys.list, 'NX', input.createdAt, input.documentId)
local version = redis.call('HINCRBY', keys.knowledge, 'version', 1)
redis.call('HSET', keys.knowledge, field, version .. ':' .. count, 's:' .. input.documentId, input.status)
outbox(keys.outbox, input.jobs)
return 'written'

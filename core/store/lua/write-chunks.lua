-- Replaces a document's chunks if the document still has the revision from which they were made, lists it, and bumps the handle's version.
-- Keys: document, knowledge, list, outbox
-- Input: revision, documentId, createdAt (ms), prefix (of its chunk keys), status, jobs, language, sizes (number of values of each chunk),
--   values (each chunk's fields and values, alternating)
-- Returns "written", or "changed" if the document has another revision by now.
if (redis.call('HGET', keys.document, 'revision') or '') ~= input.revision then return 'changed' end
local field = 'd:' .. input.documentId
local count = #input.sizes
local old = tonumber(string.match(redis.call('HGET', keys.knowledge, field) or '', ':(%d+)$')) or 0
countLanguage(keys.knowledge, redis.call('HGET', input.prefix .. '0', 'language'), -old)
for place = count, old - 1 do redis.call('DEL', input.prefix .. place) end
local at = 1
for place, size in ipairs(input.sizes) do
  local key = input.prefix .. (place - 1)
  redis.call('HDEL', key, 'vector', 'model', 'dimensions')
  -- One command, since a search module indexes the chunk again after each command that writes it.
  redis.call('HSET', key, unpack(input.values, at, at + size - 1))
  at = at + size
end
countLanguage(keys.knowledge, input.language, count)
redis.call('ZADD', keys.list, 'NX', input.createdAt, input.documentId)
local version = redis.call('HINCRBY', keys.knowledge, 'version', 1)
redis.call('HSET', keys.knowledge, field, version .. ':' .. count, 's:' .. input.documentId, input.status)
outbox(keys.outbox, input.jobs)
return 'written'

-- Replaces a document's chunks if the document still has the revision that they were made of, and bumps the handle's version.
-- KEYS 1 document, 2 knowledge, 3 outbox, 4… chunks
-- ARGV 1 revision, 2 document id, 3 prefix of its chunk keys, 4 status, 5 jobs, then per chunk: handle, document id, title,
--      topic, source, heading, text, tags, vector (bytes or empty), model, dimensions, terms
-- Returns "written", or "changed" when the document is another one by now.
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 'changed' end
local field = 'd:' .. ARGV[2]
local count = #KEYS - 3
local old = tonumber(string.match(redis.call('HGET', KEYS[2], field) or '', ':(%d+)$')) or 0
for part = count, old - 1 do redis.call('DEL', ARGV[3] .. part) end
for part = 1, count do
  local at = 6 + (part - 1) * 12
  local key = KEYS[part + 3]
  local fields = {'handle', ARGV[at], 'documentId', ARGV[at + 1], 'title', ARGV[at + 2], 'topic', ARGV[at + 3],
    'source', ARGV[at + 4], 'heading', ARGV[at + 5], 'text', ARGV[at + 6], 'tags', ARGV[at + 7], 'terms', ARGV[at + 11]}
  if ARGV[at + 8] == '' then
    redis.call('HDEL', key, 'vector', 'model', 'dimensions')
  else
    for _, value in ipairs({'vector', ARGV[at + 8], 'model', ARGV[at + 9], 'dimensions', ARGV[at + 10]}) do
      table.insert(fields, value)
    end
  end
  -- A search module indexes the chunk again with each command that writes it.
  redis.call('HSET', key, unpack(fields))
end
local version = redis.call('HINCRBY', KEYS[2], 'version', 1)
redis.call('HSET', KEYS[2], field, version .. ':' .. count, 's:' .. ARGV[2], ARGV[4])
outbox(KEYS[3], ARGV[5])
return 'written'

-- Replaces a document's chunks if the document still has the revision that they were made of, and bumps the handle's version.
-- Needs knowledge-prelude.lua
-- KEYS 1 document, 2 knowledge, 3 outbox, 4… chunks
-- ARGV 1 revision, 2 document id, 3 prefix of its chunk keys, 4 status, 5 jobs, 6 language, then per chunk: the number of values
--      that follow, and its fields and their values in turn
-- Returns "written", or "changed" when the document is another one by now.
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 'changed' end
local field = 'd:' .. ARGV[2]
local count = #KEYS - 3
local old = tonumber(string.match(redis.call('HGET', KEYS[2], field) or '', ':(%d+)$')) or 0
countLanguage(KEYS[2], redis.call('HGET', ARGV[3] .. '0', 'language'), -old)
for part = count, old - 1 do redis.call('DEL', ARGV[3] .. part) end
local at = 7
for part = 1, count do
  local key = KEYS[part + 3]
  local last = at + tonumber(ARGV[at])
  redis.call('HDEL', key, 'vector', 'model', 'dimensions')
  -- One command, since a search module indexes the chunk again with each that writes it.
  redis.call('HSET', key, unpack(ARGV, at + 1, last))
  at = last + 1
end
countLanguage(KEYS[2], ARGV[6], count)
local version = redis.call('HINCRBY', KEYS[2], 'version', 1)
redis.call('HSET', KEYS[2], field, version .. ':' .. count, 's:' .. ARGV[2], ARGV[4])
outbox(KEYS[3], ARGV[5])
return 'written'

-- Removes a document with its chunks and its place in the list, and bumps the handle's version.
-- Needs knowledge-prelude.lua
-- KEYS 1 document, 2 knowledge, 3 list   ARGV 1 document id, 2 prefix of its chunk keys
-- Returns 1 when the document was there, else 0.
-- Runs on a full Redis: it frees.
local field = 'd:' .. ARGV[1]
local count = tonumber(string.match(redis.call('HGET', KEYS[2], field) or '', ':(%d+)$')) or 0
countLanguage(KEYS[2], redis.call('HGET', ARGV[2] .. '0', 'language'), -count)
for part = 0, count - 1 do redis.call('DEL', ARGV[2] .. part) end
redis.call('HDEL', KEYS[2], field, 's:' .. ARGV[1])
redis.call('HINCRBY', KEYS[2], 'version', 1)
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('DEL', KEYS[1])

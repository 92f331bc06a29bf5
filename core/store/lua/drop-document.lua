-- Removes a document with its chunks and its list entry, and bumps the handle's version.
-- Keys: document, knowledge, list
-- Input: documentId, prefix (of its chunk keys)
-- Returns 1 if the document existed, else 0.
dropChunks(0)
redis.call('HDEL', keys.knowledge, field, 's:' .. input.documentId)
bump(keys.knowledge, 'version')
redis.call('ZREM', keys.list, input.documentId)
return redis.call('DEL', keys.document)

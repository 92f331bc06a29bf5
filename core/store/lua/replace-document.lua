-- Replaces a document if it has the revision that the change was made from. A repetition after a lost connection changes nothing.
-- Keys: document
-- Input: earlier ("" if there must be no document), revision (the new one), values (fields and values, alternating)
-- Returns "written", or "changed" if the document has another revision by now.
local current = redis.call('HGET', keys.document, 'revision') or ''
if current == input.revision then return 'written' end
if current ~= input.earlier then return 'changed' end
redis.call('DEL', keys.document)
redis.call('HSET', keys.document, unpack(input.values))
return 'written'

-- A worker's heartbeat for its run. Reports whether the run is still the worker's, whether it has readers, and its inboxes.
-- Keys: chunks, readers, alive
-- Input: generation, lostMs (until the run counts as lost), keepMs
-- Returns {"read" | "unread", number of the last chunk stored, inbox ...}, or {"unknown"}, {"superseded"}, {"ended", state}.
local newest = redis.call('XREVRANGE', keys.chunks, '+', '-', 'COUNT', 1)[1]
if not newest then return { 'unknown' } end
local generation, number = string.match(newest[1], '^(%d+)-(%d+)$')
if tonumber(generation) == 4294967295 then return { 'ended', newest[2][2] } end
if tonumber(generation) ~= input.generation then return { 'superseded' } end
redis.call('SET', keys.alive, input.generation, 'PX', input.lostMs)
redis.call('PEXPIRE', keys.chunks, input.keepMs)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local inboxes = redis.call('ZRANGEBYSCORE', keys.readers, '(' .. now, '+inf')
local left = #inboxes == 0 and redis.call('EXISTS', keys.readers) == 1
return { left and 'unread' or 'read', tonumber(number), unpack(inboxes) }

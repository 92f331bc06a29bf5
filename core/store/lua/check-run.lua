-- A worker's sign of life for its run, and what it must know: is the run still its own, who reads it, what has arrived.
-- KEYS 1 chunks, 2 readers, 3 alive   ARGV 1 generation, 2 ms until the run counts as lost, 3 ms to keep
-- Returns {"read" | "unread", number of the last chunk stored, inbox ...}, or {"unknown"}, {"superseded"}, {"ended", state}.
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not top then return { 'unknown' } end
local generation, number = string.match(top[1], '^(%d+)-(%d+)$')
if tonumber(generation) == 4294967295 then return { 'ended', top[2][2] } end
if generation ~= ARGV[1] then return { 'superseded' } end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local inboxes = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')
local left = #inboxes == 0 and redis.call('EXISTS', KEYS[2]) == 1
return { left and 'unread' or 'read', tonumber(number), unpack(inboxes) }

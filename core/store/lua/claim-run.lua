-- Takes a run for one attempt of its job, once, and shuts out earlier attempts: their entries have lower ids, which the stream refuses.
-- KEYS 1 chunks, 2 readers, 3 alive   ARGV 1 generation, 2 token of the attempt, 3 ms until the run counts as lost, 4 ms to keep
-- Returns {"claimed", inbox ...}, or why not: {"unknown"}, {"ended"}, {"superseded"}, {"sent"} (chunks are out), {"unread"} (all readers left).
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not top then return { 'unknown' } end
local generation, number = string.match(top[1], '^(%d+)-(%d+)$')
if tonumber(generation) == 4294967295 then return { 'ended' } end
local repeated = generation == ARGV[1] and top[2][2] == ARGV[2]
if tonumber(generation) >= tonumber(ARGV[1]) and not repeated then return { 'superseded' } end
if tonumber(generation) > 0 and tonumber(number) > 0 then return { 'sent' } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local inboxes = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')
if #inboxes == 0 and redis.call('EXISTS', KEYS[2]) == 1 then return { 'unread' } end
if not repeated then redis.call('XADD', KEYS[1], ARGV[1] .. '-0', 'c', ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[3])
return { 'claimed', unpack(inboxes) }

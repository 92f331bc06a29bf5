-- Says until when a web process reads a run: it joins, stays, or (with a short lease or none) leaves.
-- KEYS 1 chunks, 2 readers, 3 alive   ARGV 1 inbox, 2 ms of the lease from now (TIME), 3 ms to keep
-- Returns {"read" | "unread", ms until the run counts as lost, 0 when it does, id of the newest entry}, "unread" where no lease is left;
-- or {"unknown"}.
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not top then return { 'unknown' } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local read = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf') > 0
return { read and 'read' or 'unread', math.max(0, redis.call('PTTL', KEYS[3])), top[1] }

-- Writes the last entry of a run, after which the stream takes no other: its id is above all that a worker writes. The run's fields,
-- what a visitor has asked and said before, are needed no more.
-- KEYS 1 chunks, 2 readers, 3 alive, 4 fields   ARGV 1 state, 2 ms to keep, 3 condition, 4 its value:
--   "anyway"; "unread": no reader's lease lasts; "silent": the worker shows no life; "written": the newest entry's id is the value
-- Returns {"ended", number of the last chunk, inbox ...}, or {"unknown"}, {"already", state}, {"refused"} when the condition fails.
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not top then return { 'unknown' } end
local generation, number = string.match(top[1], '^(%d+)-(%d+)$')
if tonumber(generation) == 4294967295 then return { 'already', top[2][2] } end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local inboxes = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')
if ARGV[3] == 'unread' and #inboxes > 0 then return { 'refused' } end
if ARGV[3] == 'silent' and redis.call('EXISTS', KEYS[3]) == 1 then return { 'refused' } end
if ARGV[3] == 'written' and top[1] ~= ARGV[4] then return { 'refused' } end
if generation == '0' then number = '0' end
redis.call('XADD', KEYS[1], '4294967295-' .. number, 'c', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('DEL', KEYS[4])
return { 'ended', tonumber(number), unpack(inboxes) }

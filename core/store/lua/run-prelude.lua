-- Prelude of the scripts of a run. Needs the keys chunks, readers and alive. Returns "unknown" if there is no such run. Otherwise it names
-- the newest entry of its stream with the two halves of its id and whether it ended the run, the real time in ms (of TIME), whether a
-- reader has a lease, and whether all readers have left.
local newest = redis.call('XREVRANGE', keys.chunks, '+', '-', 'COUNT', 1)[1]
if not newest then return 'unknown' end
local generation, number = string.match(newest[1], '^(%d+)-(%d+)$')
generation, number = tonumber(generation), tonumber(number)
local hasEnded = generation == 4294967295
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local isRead = redis.call('ZCOUNT', keys.readers, '(' .. now, '+inf') > 0
local isLeft = not isRead and redis.call('EXISTS', keys.readers) == 1

-- Moves a delivery to another status, or notes an event of it, with what that causes: its place in the queue, a suppression.
-- Needs email-prelude.lua
-- KEYS 1-6 as in email-prelude.lua, 7 suppressed (hash), 8 suppressions by time (zset), 9 outbox
-- ARGV 1 id, 2 n, 3 statuses from which it may move (joined by commas), 4 new status ('' to keep it), 5 type of the event,
--   6 instant, 7 domain ms, 8 further JSON members of the event, 9 token of the sender ('' where nobody sends),
--   10 real ms when it is due again ('' for never), 11 attempts to give back, 12 suppression as JSON ('' for none),
--   13 suppression that ends, as JSON ('' for none), 14 jobs
-- Returns "moved", or "stale" where it is not in one of the statuses, another one sends it now, or the suppression has ended.
-- Runs on a full Redis: a mail whose sending was not noted would be sent again.
local id, n, place = ARGV[1], tonumber(ARGV[2]), ARGV[1] .. ':' .. ARGV[2]
local message = KEYS[1] .. id
local statuses, token, rank = unpack(redis.call('HMGET', message, 'statuses', 'token:' .. n, 'rank'))
if not statuses then return 'stale' end
local current = split(statuses)[n + 1]
local allowed = false
for _, status in ipairs(split(ARGV[3])) do allowed = allowed or status == current end
if not allowed or (ARGV[9] ~= '' and ARGV[9] ~= token) then return 'stale' end
local digest = redis.call('HGET', message, 'digest:' .. n)
if ARGV[13] ~= '' then
  if redis.call('HGET', KEYS[7], digest) ~= ARGV[13] then return 'stale' end
  redis.call('HDEL', KEYS[7], digest)
  redis.call('ZREM', KEYS[8], digest)
end

if ARGV[4] ~= '' then
  redis.call('ZREM', KEYS[6], place)
  redis.call('ZREM', KEYS[4] .. rank, place)
  if ARGV[10] ~= '' then redis.call('ZADD', KEYS[4] .. rank, ARGV[10], place) end
  redis.call('HDEL', message, 'token:' .. n)
end
happened(id, n, { type = ARGV[5], at = ARGV[6], ms = tonumber(ARGV[7]), more = ARGV[8] })
if ARGV[11] ~= '0' then redis.call('HINCRBY', message, 'attempt:' .. n, '-' .. ARGV[11]) end
if ARGV[4] ~= '' then become(id, n, ARGV[4]) end
if ARGV[12] ~= '' then
  redis.call('HSETNX', KEYS[7], digest, ARGV[12])
  redis.call('ZADD', KEYS[8], 'NX', ARGV[7], digest)
end
outbox(KEYS[9], ARGV[14])
return 'moved'

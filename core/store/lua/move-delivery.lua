-- Moves a delivery to another status, or records an event of it, with the consequences: its queue entry, a suppression.
-- Keys: those of email-prelude.lua, leases (zset), suppressed (hash), suppressions (by time; zset), outbox
-- Input: messageId, n, from (statuses from which it may move), to (the new status; absent to keep it), type (of the event), instant, at
--   (domain ms), members (further JSON members of the event), token (of the sender; absent if none is sending), due (real ms of the next
--   attempt; absent for none), givesBack (the attempt does not count), suppression (optional JSON), lifted (optional JSON of a suppression
--   to remove), jobs
-- Returns "moved", or "stale" if it is in none of those statuses, another sender has it, the suppression was removed before, or a
-- recipient unsubscribes whose address is suppressed.
local id, n, name = input.messageId, input.n, input.messageId .. ':' .. input.n
local message = keys.messages .. id
local statuses, token, rank = unpack(redis.call('HMGET', message, 'statuses', 'token:' .. n, 'rank'))
if not statuses then return 'stale' end
local current = split(statuses)[n + 1]
local allowed = false
for _, status in ipairs(input.from) do allowed = allowed or status == current end
if not allowed or (input.token and input.token ~= token) then return 'stale' end
local digest = redis.call('HGET', message, 'digest:' .. n)
if input.type == 'UNSUBSCRIBED' and redis.call('HEXISTS', keys.suppressed, digest) == 1 then return 'stale' end
if input.lifted then
  if redis.call('HGET', keys.suppressed, digest) ~= input.lifted then return 'stale' end
  redis.call('HDEL', keys.suppressed, digest)
  redis.call('ZREM', keys.suppressions, digest)
end

if input.to then
  redis.call('ZREM', keys.leases, name)
  redis.call('ZREM', keys.queues .. rank, name)
  if input.due then redis.call('ZADD', keys.queues .. rank, input.due, name) end
  redis.call('HDEL', message, 'token:' .. n)
end
addEvent(id, n, { type = input.type, at = input.instant, ms = input.at, more = input.members })
if input.givesBack then redis.call('HINCRBY', message, 'attempt:' .. n, -1) end
if input.to then setStatus(id, n, input.to) end
if input.suppression then suppress(digest, input.suppression, input.at) end
outbox(keys.outbox, input.jobs)
return 'moved'

-- Creates, moves or updates a booking, if it has the expected version and its slot is free, with its jobs and events.
-- Neither blocks (bookings with their buffers) nor busy times overlap among themselves, so the last one that starts before an end decides.
-- Keys: booking (hash version, json, status, block), blocks (zset "from:to:hold:start:eventTypeId:uid" by from), busy (zset "from:to" by
--   from), all (bookings; zset uid by start), before and after (lists of its status before and after), catalog and times (counters),
--   outbox, record (of the idempotency key), credentials (connected accounts; zset), bucket (of the visitor's network), attendee (its
--   future bookings; zset uid by start)
-- Input: version (expected; 0: a new booking), catalogVersion (as read; absent: any), json, status, uid, start, now, slot ("claim" it;
--   "reclaim" it, which succeeds too while the booking holds it; "hold" it as it is; "release" it), block (member, from, to; for a claim),
--   eventTypeId, dayLimit (optional: max bookings from `from` to `to`), record (to store; "forget" removes it), recordMs, jobs, syncJobs
--   (for the connected accounts), networkLimit (optional: interval, µs until a new token, and burst of the bucket), maxFuture (bookings of
--   the attendee; 0: any number)
-- Returns {"written"}, {"changed"}, {"taken"} for a slot that is not free or whose day is full, {"crowded", domain ms until the attendee's
--   next booking begins}, {"limited", ms until the bucket has a token}, or {"repeated"} if the idempotency key was used before.
local now, isNew = input.now, input.version == 0
local version, json = unpack(redis.call('HMGET', keys.booking, 'version', 'json'))
-- A repetition after a lost connection: no other request has this uid.
if isNew and json == input.json then return { 'written' } end
if isNew and input.record and redis.call('EXISTS', keys.record) == 1 then return { 'repeated' } end
if tonumber(version or 0) ~= input.version then return { 'changed' } end
if input.catalogVersion and (redis.call('GET', keys.catalog) or '0') ~= input.catalogVersion then return { 'changed' } end

local function lastBefore(key, to)
  return redis.call('ZRANGE', key, string.format('(%d', to), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
end

-- Removes expired holds that it meets.
local function isTaken(from, to)
  local last = lastBefore(keys.blocks, to)
  while last do
    local ends, hold = string.match(last, '^%d+:(%d+):(%d+):')
    if tonumber(ends) <= from then break end
    if hold == '0' or tonumber(hold) > now then return true end
    redis.call('ZREM', keys.blocks, last)
    last = lastBefore(keys.blocks, to)
  end
  local busy = lastBefore(keys.busy, to)
  return busy and tonumber(string.match(busy, ':(%d+)$')) > from
end

-- A block begins at most a day before its booking.
local function isFull()
  local limit = input.dayLimit
  if not limit then return false end
  local count = 0
  for _, block in ipairs(redis.call('ZRANGE', keys.blocks, limit.from - 86400000, string.format('(%d', limit.to), 'BYSCORE')) do
    local hold, start, type = string.match(block, '^%d+:%d+:(%d+):(%d+):([^:]+):')
    local counts = hold == '0' or tonumber(hold) > now
    if counts and type == input.eventTypeId and tonumber(start) >= limit.from and tonumber(start) < limit.to then count = count + 1 end
  end
  return count >= limit.max
end

-- An expired hold doesn't count, even before its booking is marked as REJECTED.
local function isHeld(uid)
  local key = string.sub(keys.booking, 1, -#input.uid - 1) .. uid
  local hold = string.match(redis.call('HGET', key, 'block') or '', '^%d+:%d+:(%d+):')
  return hold == '0' or (hold and tonumber(hold) > now)
end

-- Ms until the first of the attendee's bookings begins, if the attendee has as many as allowed.
local function crowdedFor()
  if input.maxFuture == 0 or not isNew then return nil end
  if redis.call('ZCARD', keys.attendee) < input.maxFuture then return nil end
  redis.call('ZREMRANGEBYSCORE', keys.attendee, '-inf', now)
  local count, first, held = 0, nil, redis.call('ZRANGE', keys.attendee, 0, -1, 'WITHSCORES')
  for at = 1, #held, 2 do
    if isHeld(held[at]) then count, first = count + 1, first or held[at + 1] end
  end
  return count >= input.maxFuture and first - now or nil
end

-- Ms until the network may change a booking again; takes a token if there is one.
local function limitedFor()
  local limit = input.networkLimit
  if not limit then return nil end
  local taken, wait = takeTokens(keys.bucket, limit.interval, limit.burst, 1)
  return taken == 0 and wait or nil
end

local before = redis.call('HGET', keys.booking, 'block') or ''
local held = before ~= '' and redis.call('ZREM', keys.blocks, before) == 1
local refused, wait = false, nil
if input.slot == 'claim' or (input.slot == 'reclaim' and not (held and isHeld(input.uid))) then
  refused = (isTaken(input.block.from, input.block.to) or isFull()) and 'taken'
end
if not refused then wait = crowdedFor(); refused = wait and 'crowded' end
if not refused then wait = limitedFor(); refused = wait and 'limited' end
if refused then
  if held then redis.call('ZADD', keys.blocks, string.match(before, '^%d+'), before) end
  return { refused, wait and string.format('%d', wait) }
end
local after = input.block and input.block.member or ''
if input.slot == 'hold' and held then after = before end
if after ~= '' then redis.call('ZADD', keys.blocks, string.match(after, '^%d+'), after) end

-- Numbers become text once: Redis and Lua write each as a fraction, which costs as much as a small command.
local start = string.format('%d', input.start)
redis.call('HSET', keys.booking, 'version', string.format('%d', input.version + 1), 'json', input.json, 'status', input.status, 'block', after)
redis.call('ZADD', keys.all, start, input.uid)
redis.call('ZREM', keys.before, input.uid)
redis.call('ZADD', keys.after, start, input.uid)
if input.status == 'CANCELLED' or input.status == 'REJECTED' then
  redis.call('ZREM', keys.attendee, input.uid)
elseif input.start > now then
  redis.call('ZADD', keys.attendee, start, input.uid)
  -- The list expires when its last booking begins; GT alone would leave a new key without an expiry.
  local ttl = string.format('%d', input.start - now)
  if redis.call('PEXPIRE', keys.attendee, ttl, 'NX') == 0 then redis.call('PEXPIRE', keys.attendee, ttl, 'GT') end
end
if input.slot ~= 'hold' then redis.call('INCR', keys.times) end
if input.record == 'forget' then redis.call('DEL', keys.record) elseif input.record then
  redis.call('SET', keys.record, input.record, 'PX', input.recordMs)
end
outbox(keys.outbox, input.jobs)
if #input.syncJobs > 0 and redis.call('EXISTS', keys.credentials) == 1 then outbox(keys.outbox, input.syncJobs) end
return { 'written' }

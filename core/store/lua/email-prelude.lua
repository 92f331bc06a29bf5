-- Prelude of the email scripts. A delivery is one recipient of a message, numbered n from 0; queues and leases name it "id:n". The hash of
-- a message has the fields json, content, purpose, rank, status, statuses (of its deliveries, comma-separated), idempotent (digest of its
-- idempotency key) and, for each delivery, about:n (members of its events), digest:n, attempt:n, token:n. Keys of those scripts:
-- messages, timelines, events (lists) and queues, all prefixes, and stamp. addEvent(id, n, event) and setStatus(id, n, status) write and
-- return nothing. Returns nothing by itself.
local retentionSeconds = 7776000 -- seconds for which a message and its events are stored after the last event

local unfinished = { QUEUED = 1, DEFERRED = 2, SENDING = 3 }
local wasSent = { SENT = true, DELIVERED = true, BOUNCED = true, COMPLAINED = true }

local function split(text)
  local parts = {}
  for part in string.gmatch(text, '[^,]+') do parts[#parts + 1] = part end
  return parts
end

-- The status of a message with several deliveries: the least advanced unfinished one, else SENT, FAILED or DENIED, in this order.
local function overall(statuses)
  if #statuses == 1 then return statuses[1] end
  local least, seen = nil, {}
  for _, status in ipairs(statuses) do
    if unfinished[status] and (least == nil or unfinished[status] < unfinished[least]) then least = status end
    seen[wasSent[status] and 'SENT' or status] = true
  end
  if least then return least end
  for _, status in ipairs({ 'SENT', 'FAILED', 'DENIED' }) do
    if seen[status] then return status end
  end
  return 'CANCELLED'
end

-- Sets the status of a delivery and the resulting status of its message. Removes the content once every delivery is finished.
local function setStatus(id, n, status)
  local message = keys.messages .. id
  local statuses = split(redis.call('HGET', message, 'statuses'))
  statuses[n + 1] = status
  local all = overall(statuses)
  redis.call('HSET', message, 'statuses', table.concat(statuses, ','), 'status', all)
  if not unfinished[all] then redis.call('HDEL', message, 'content') end
end

-- Appends an event (type, at, ms, more: further JSON members, each after a comma) to the timeline and to the lists of its purpose
-- and recipient. Stamps are domain microseconds and strictly increasing. Clocks of processes differ: an event that would be earlier than
-- the one before it is as late as that.
local function addEvent(id, n, event)
  local message = keys.messages .. id
  local about, digest, purpose, attempt = unpack(redis.call('HMGET', message, 'about:' .. n, 'digest:' .. n, 'purpose', 'attempt:' .. n))
  local stamp = string.format('%.0f', math.max(event.ms * 1000, tonumber(redis.call('GET', keys.stamp) or '0') + 1))
  redis.call('SET', keys.stamp, stamp)
  -- Reasons of an earlier version may have lone surrogates, which the decoder refuses.
  local isRead, last = pcall(cjson.decode, redis.call('LINDEX', keys.timelines .. id, -1))
  local before = isRead and last.at or event.at
  local at = before > event.at and before or event.at
  local json = '{"eventId":"mev_' .. stamp .. '",' .. about .. ',"type":"' .. event.type .. '","at":"' .. at .. '","attempt":' .. (attempt or '0') .. event.more .. '}'
  local position = redis.call('RPUSH', keys.timelines .. id, json) - 1
  for _, list in ipairs({ keys.events .. purpose, keys.events .. 'to:' .. digest }) do
    redis.call('ZADD', list, stamp, id .. ':' .. position)
    redis.call('ZREMRANGEBYSCORE', list, '-inf', string.format('(%.0f', (event.ms - retentionSeconds * 1000) * 1000))
    redis.call('EXPIRE', list, retentionSeconds)
  end
  redis.call('EXPIRE', message, retentionSeconds)
  redis.call('EXPIRE', keys.timelines .. id, retentionSeconds)
end

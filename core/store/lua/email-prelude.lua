-- Stands before the scripts of email that need it. A delivery is one recipient of a message, numbered n from 0; deliveries are
-- named "id:n" in queues and leases. The hash of a message holds json, content, purpose, rank, status, statuses (of its
-- deliveries, joined by commas) and for each delivery about:n (members of its events), digest:n, attempt:n, token:n.
-- Keys of those scripts: messages, timelines, events (lists) and queues, all prefixes, and stamp.
-- happened(id, n, event) and become(id, n, status) write and return nothing. Returns nothing by itself.
local kept = 7776000 -- seconds for which a message and its events stay after the last one

local unfinished = { QUEUED = 1, DEFERRED = 2, SENDING = 3 }
local was_sent = { SENT = true, DELIVERED = true, BOUNCED = true, COMPLAINED = true }

local function split(text)
  local parts = {}
  for part in string.gmatch(text, '[^,]+') do parts[#parts + 1] = part end
  return parts
end

-- The status of a message: of several deliveries the least advanced that is unfinished, else SENT, FAILED, DENIED in this order.
local function overall(statuses)
  if #statuses == 1 then return statuses[1] end
  local least, seen = nil, {}
  for _, status in ipairs(statuses) do
    if unfinished[status] and (least == nil or unfinished[status] < unfinished[least]) then least = status end
    seen[was_sent[status] and 'SENT' or status] = true
  end
  if least then return least end
  for _, status in ipairs({ 'SENT', 'FAILED', 'DENIED' }) do
    if seen[status] then return status end
  end
  return 'CANCELLED'
end

-- Gives a delivery its status, and the message the one that follows. What was to be sent goes when nothing is left to send.
local function become(id, n, status)
  local message = keys.messages .. id
  local statuses = split(redis.call('HGET', message, 'statuses'))
  statuses[n + 1] = status
  local all = overall(statuses)
  redis.call('HSET', message, 'statuses', table.concat(statuses, ','), 'status', all)
  if not unfinished[all] then redis.call('HDEL', message, 'content') end
end

-- Appends an event (type, at, ms, more: further JSON members, each after a comma) to the timeline and to the lists of its purpose
-- and recipient. Stamps are domain microseconds, each larger than all before it.
local function happened(id, n, event)
  local message = keys.messages .. id
  local about, digest, purpose, attempt = unpack(redis.call('HMGET', message, 'about:' .. n, 'digest:' .. n, 'purpose', 'attempt:' .. n))
  local stamp = string.format('%.0f', math.max(event.ms * 1000, tonumber(redis.call('GET', keys.stamp) or '0') + 1))
  redis.call('SET', keys.stamp, stamp)
  local json = '{"eventId":"mev_' .. stamp .. '",' .. about .. ',"type":"' .. event.type .. '","at":"' .. event.at .. '","attempt":' .. (attempt or '0') .. event.more .. '}'
  local place = redis.call('RPUSH', keys.timelines .. id, json) - 1
  for _, list in ipairs({ keys.events .. purpose, keys.events .. 'to:' .. digest }) do
    redis.call('ZADD', list, stamp, id .. ':' .. place)
    redis.call('ZREMRANGEBYSCORE', list, '-inf', string.format('(%.0f', (event.ms - kept * 1000) * 1000))
    redis.call('EXPIRE', list, kept)
  end
  redis.call('EXPIRE', message, kept)
  redis.call('EXPIRE', keys.timelines .. id, kept)
end

-- One turn of an endpoint's sender: records the outcome of some deliveries, and leases others that are due, for the active sender of
-- it. A sender without running deliveries that finds none due goes to sleep. Expired deliveries leave the queue.
-- Keys: queue (zset by real ms when due), awake (the active sender; string), failing (first failure since the last success; string, real
--   ms), endpoint (hash json), delivery, event and answers (what the keys of deliveries, events and answers begin with)
-- Input: senderId, now (real ms), leaseMs (of a delivery, and of a heartbeat), max (deliveries), busy (deliveries that the sender still
--   sends), failureMs (to keep a first failure), results (deliveries after their attempts: id, json, due: real ms when it is due again,
--   absent for never, outcome: of the call, "succeeded", "failed", "gone", or "" if there was no call; eventId, and answers: a list of
--   fields, each before the beginning of the endpoint's answer, which are stored as long as the event)
-- Returns {first failure ("" for none), state, …}: "busy" if another is awake, "asleep" with the real ms of the next one ("" for none),
--   "gone" if there is no such endpoint, or "awake"; deliveries come with the json of the endpoint, each as [json,
--   content of the event ("" if it is gone)].
local over, again, succeeded, failed = {}, {}, false, false
for _, one in ipairs(input.results) do
  if redis.call('SET', keys.delivery .. one.id, one.json, 'XX', 'KEEPTTL') and one.due then
    again[#again + 1] = one.due
    again[#again + 1] = one.id
  else
    over[#over + 1] = one.id
  end
  local left = #one.answers > 0 and redis.call('PTTL', keys.event .. one.eventId) or 0
  if left > 0 then
    redis.call('HSET', keys.answers .. one.eventId, unpack(one.answers))
    redis.call('PEXPIRE', keys.answers .. one.eventId, left)
  end
  if one.outcome == 'succeeded' then succeeded, failed = true, false elseif one.outcome ~= '' then failed = true end
end
if #again > 0 then redis.call('ZADD', keys.queue, unpack(again)) end
if #over > 0 then redis.call('ZREM', keys.queue, unpack(over)) end
if succeeded then redis.call('DEL', keys.failing) end
if failed and redis.call('EXISTS', keys.endpoint) == 1 then redis.call('SET', keys.failing, input.now, 'PX', input.failureMs, 'NX') end
local since = redis.call('GET', keys.failing) or ''

local holder = redis.call('GET', keys.awake)
if holder and holder ~= 'called' and holder ~= input.senderId then return { since, 'busy' } end
local due = redis.call('ZRANGEBYSCORE', keys.queue, '-inf', input.now, 'LIMIT', 0, input.max)
if #due == 0 and input.busy == 0 then
  redis.call('DEL', keys.awake)
  return { since, 'asleep', redis.call('ZRANGE', keys.queue, 0, 0, 'WITHSCORES')[2] or '' }
end
redis.call('SET', keys.awake, input.senderId, 'PX', input.leaseMs)
if #due == 0 then return { since, 'awake' } end

local endpoint = redis.call('HGET', keys.endpoint, 'json')
if not endpoint then return { since, 'gone' } end
local names, leases, deliveries, events, gone = {}, {}, {}, {}, {}
for at, id in ipairs(due) do names[at] = keys.delivery .. id end
local found = redis.call('MGET', unpack(names))
for at, id in ipairs(due) do
  if found[at] then
    leases[#leases + 1] = input.now + input.leaseMs
    leases[#leases + 1] = id
    deliveries[#deliveries + 1] = found[at]
    events[#events + 1] = keys.event .. cjson.decode(found[at]).eventId
  else
    gone[#gone + 1] = id
  end
end
if #gone > 0 then redis.call('ZREM', keys.queue, unpack(gone)) end
if #deliveries == 0 then return { since, 'awake' } end
redis.call('ZADD', keys.queue, unpack(leases))
local taken = { since, 'awake', endpoint }
local contents = redis.call('MGET', unpack(events))
for at, json in ipairs(deliveries) do taken[#taken + 1] = { json, contents[at] or '' } end
return taken

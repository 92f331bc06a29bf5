-- One turn of an endpoint's sender: records the outcome of some deliveries, and leases others that are due, for the active sender of
-- it; who holds nothing and finds nothing goes to sleep. What is no longer kept goes out of the queue.
-- KEYS 1 queue (zset by real ms when due), 2 the active sender (string), 3 first failure since the last success (string, real ms),
--   4 endpoint (hash version, json), 5 and 6 what the keys of deliveries and of events begin with
-- ARGV 1 the sender, 2 real ms now, 3 ms for which a lease and a heartbeat count, 4 most deliveries, 5 deliveries that the asker still
--   sends, 6 version of the endpoint that the asker knows, 7 ms to keep a first failure, then for each delivery that became something:
--   id, json, real ms when it is due again ("" for never), what the endpoint did ("succeeded", another word, or "" where it wasn't asked)
-- Returns {first failure ("" for none), word, …}: "busy" when another is awake, "asleep" with the real ms of the next one ("" for none),
--   "gone" when there is no such endpoint, or "taken" with the endpoint's version and its json ("" where the asker knows it), then id, json
--   and content of the event ("" where it is gone) of each delivery.
-- Runs on a full Redis: an event whose sending was not noted would be sent again.
local queue, awake, failing = KEYS[1], KEYS[2], KEYS[3]

local over, again, succeeded, failed = {}, {}, false, false
for at = 8, #ARGV, 4 do
  local id, json, due, outcome = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if redis.call('SET', KEYS[5] .. id, json, 'XX', 'KEEPTTL') and due ~= '' then
    again[#again + 1] = due
    again[#again + 1] = id
  else
    over[#over + 1] = id
  end
  if outcome == 'succeeded' then succeeded, failed = true, false elseif outcome ~= '' then failed = true end
end
if #again > 0 then redis.call('ZADD', queue, unpack(again)) end
if #over > 0 then redis.call('ZREM', queue, unpack(over)) end
if succeeded then redis.call('DEL', failing) end
if failed then redis.call('SET', failing, ARGV[2], 'PX', ARGV[7], 'NX') end
local since = redis.call('GET', failing) or ''

local holder = redis.call('GET', awake)
if holder and holder ~= 'called' and holder ~= ARGV[1] then return { since, 'busy' } end
local due = redis.call('ZRANGEBYSCORE', queue, '-inf', ARGV[2], 'LIMIT', 0, ARGV[4])
if #due == 0 and ARGV[5] == '0' then
  redis.call('DEL', awake)
  return { since, 'asleep', redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2] or '' }
end
redis.call('SET', awake, ARGV[1], 'PX', ARGV[3])
if #due == 0 then return { since, 'taken', ARGV[6], '' } end

local version, endpoint = unpack(redis.call('HMGET', KEYS[4], 'version', 'json'))
if not endpoint then return { since, 'gone' } end
local names, leases, kept, events, gone = {}, {}, {}, {}, {}
for at, id in ipairs(due) do names[at] = KEYS[5] .. id end
local found = redis.call('MGET', unpack(names))
for at, id in ipairs(due) do
  if found[at] then
    leases[#leases + 1] = ARGV[2] + ARGV[3]
    leases[#leases + 1] = id
    kept[#kept + 1] = found[at]
    events[#events + 1] = KEYS[6] .. string.match(found[at], '"eventId":"([^"]*)"')
  else
    gone[#gone + 1] = id
  end
end
if #gone > 0 then redis.call('ZREM', queue, unpack(gone)) end
local taken = { since, 'taken', version, version == ARGV[6] and '' or endpoint }
if #kept == 0 then return taken end
redis.call('ZADD', queue, unpack(leases))
local contents = redis.call('MGET', unpack(events))
for at = 1, #kept do
  taken[#taken + 1] = leases[at * 2]
  taken[#taken + 1] = kept[at]
  taken[#taken + 1] = contents[at] or ''
end
return taken

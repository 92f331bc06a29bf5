-- One turn of who sends an endpoint's deliveries: writes what became of some, and leases others that are due, for the one who is awake for
-- it; who holds nothing and finds nothing goes to sleep. What is no longer kept goes out of the queue.
-- KEYS 1 queue (zset by real ms when due), 2 who is awake (string), 3 first failure since the last success (string, real ms),
--   4 endpoint (hash version, json), 5 and 6 what the keys of deliveries and of events begin with
-- ARGV 1 who asks, 2 real ms now, 3 ms for which a lease and a sign of life count, 4 most deliveries, 5 deliveries that the asker still
--   sends, 6 version of the endpoint that the asker knows, 7 ms to keep a first failure, then for each delivery that became something:
--   id, json, real ms when it is due again ("" for never), what the endpoint did ("succeeded", another word, or "" where it wasn't asked)
-- Returns {first failure ("" for none), word, …}: "busy" when another is awake, "asleep" with the real ms of the next one ("" for none),
--   "gone" when there is no such endpoint, or "taken" with the endpoint's version and its json ("" where the asker knows it), then id, json
--   and content of the event ("" where it is gone) of each delivery.
local queue, awake, failing = KEYS[1], KEYS[2], KEYS[3]

for at = 8, #ARGV, 4 do
  local id, json, due, outcome = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local kept = redis.call('SET', KEYS[5] .. id, json, 'XX', 'KEEPTTL')
  if kept and due ~= '' then redis.call('ZADD', queue, due, id) else redis.call('ZREM', queue, id) end
  if outcome == 'succeeded' then
    redis.call('DEL', failing)
  elseif outcome ~= '' then
    redis.call('SET', failing, ARGV[2], 'PX', ARGV[7], 'NX')
  end
end
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
local taken = { since, 'taken', version, version == ARGV[6] and '' or endpoint }
for _, id in ipairs(due) do
  local json = redis.call('GET', KEYS[5] .. id)
  if json then
    redis.call('ZADD', queue, ARGV[2] + ARGV[3], id)
    local content = redis.call('GET', KEYS[6] .. cjson.decode(json).eventId)
    for _, value in ipairs({ id, json, content or '' }) do taken[#taken + 1] = value end
  else
    redis.call('ZREM', queue, id)
  end
end
return taken

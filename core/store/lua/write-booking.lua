-- Makes a booking, moves it or changes its state, if it has the expected version and its time is free, with all that this causes.
-- Blocks (bookings with their buffers) never overlap, nor does busy time: the last that starts before an end tells all.
-- Needs bucket-prelude.lua
-- KEYS 1 booking (hash version, json, status, block), 2 blocks (zset "from:to:hold:start:eventTypeId:uid" by from),
--   3 busy (zset "from:to" by from), 4 all bookings (zset uid by start), 5 those of its status before, 6 those of its status after,
--   7 catalog counter, 8 times counter, 9 outbox, 10 record of the idempotency key, 11 webhook endpoints (zset),
--   12 connected accounts (zset), 13 bucket of the visitor's network, 14 future bookings of the attendee (zset uid by start),
--   15… webhook events
-- ARGV 1 expected version (0: there is none yet), 2 catalog version that was read ("": any), 3 json, 4 status, 5 uid, 6 start, 7 now,
--   8 "take" a time, "settle" (the same, but what it holds it may keep), "keep" or "free" it, 9 block, 10 its from, 11 its to,
--   12 event type, 13 most bookings of the day ("0": any number), 14 first ms of the day, 15 first ms after it,
--   16 record to store ("": none, "forget": remove it), 17 ms to keep it, 18 ms to keep events,
--   19 jobs, 20 jobs of the events ("": they were left out because nobody listens),
--   21 jobs for the connected accounts ("": they don't care), 22 tokens a second of the bucket ("0": no limit), 23 its burst,
--   24 most future bookings of the attendee ("0": any number), 25… contents of the events
-- Returns {"written"}, {"changed"}, {"taken"}, {"full"}, {"crowded", domain ms until the attendee's next booking begins},
--   {"limited", ms until the bucket has a token}, or {"repeated", record} when the idempotency key was used before.
local making = ARGV[1] == '0'
if making and ARGV[16] ~= '' then
  local record = redis.call('GET', KEYS[10])
  if record then return { 'repeated', record } end
end
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then return { 'changed' } end
if ARGV[2] ~= '' and (redis.call('GET', KEYS[7]) or '0') ~= ARGV[2] then return { 'changed' } end
if ARGV[20] == '' and redis.call('EXISTS', KEYS[11]) == 1 then return { 'changed' } end

local now = tonumber(ARGV[7])

-- Removes holds that have ended on its way.
local function isTaken(from, to)
  local last = redis.call('ZRANGE', KEYS[2], '(' .. to, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  while last do
    local ends, hold = string.match(last, '^%d+:(%d+):(%d+):')
    if tonumber(ends) <= tonumber(from) then break end
    if hold == '0' or tonumber(hold) > now then return true end
    redis.call('ZREM', KEYS[2], last)
    last = redis.call('ZRANGE', KEYS[2], '(' .. to, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  end
  local busy = redis.call('ZRANGE', KEYS[3], '(' .. to, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  return busy and tonumber(string.match(busy, ':(%d+)$')) > tonumber(from)
end

-- A block begins at most a day before its booking.
local function isFull()
  local most, from, to = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
  if most == 0 then return false end
  local count = 0
  for _, block in ipairs(redis.call('ZRANGE', KEYS[2], from - 86400000, '(' .. ARGV[15], 'BYSCORE')) do
    local hold, start, type = string.match(block, '^%d+:%d+:(%d+):(%d+):([^:]+):')
    local counts = hold == '0' or tonumber(hold) > now
    if counts and type == ARGV[12] and tonumber(start) >= from and tonumber(start) < to then count = count + 1 end
  end
  return count >= most
end

-- A hold that has ended counts no more, even while its booking still waits to be marked as REJECTED.
local function isHeld(uid)
  local key = string.sub(KEYS[1], 1, -#ARGV[5] - 1) .. uid
  local hold = string.match(redis.call('HGET', key, 'block') or '', '^%d+:%d+:(%d+):')
  return hold == '0' or (hold and tonumber(hold) > now)
end

-- Ms until the first of the attendee's bookings begins, where there are as many as are allowed.
local function crowdedFor()
  local most = tonumber(ARGV[24])
  if most == 0 or not making then return nil end
  if redis.call('ZCARD', KEYS[14]) < most then return nil end
  redis.call('ZREMRANGEBYSCORE', KEYS[14], '-inf', ARGV[7])
  local count, first, held = 0, nil, redis.call('ZRANGE', KEYS[14], 0, -1, 'WITHSCORES')
  for at = 1, #held, 2 do
    if isHeld(held[at]) then count, first = count + 1, first or held[at + 1] end
  end
  return count >= most and first - now or nil
end

-- Ms until the network may change a booking again; takes the token where there is one.
local function limitedFor()
  if ARGV[22] == '0' then return nil end
  local taken, wait = take_tokens(KEYS[13], tonumber(ARGV[22]), tonumber(ARGV[23]), 1)
  return taken == 0 and wait or nil
end

local before = redis.call('HGET', KEYS[1], 'block') or ''
local held = before ~= '' and redis.call('ZREM', KEYS[2], before) == 1
local action = ARGV[8]
local refused, wait = false, nil
if action == 'take' or (action == 'settle' and not held) then
  refused = isTaken(ARGV[10], ARGV[11]) and 'taken' or isFull() and 'full'
end
if not refused then wait = crowdedFor(); refused = wait and 'crowded' end
if not refused then wait = limitedFor(); refused = wait and 'limited' end
if refused then
  if held then redis.call('ZADD', KEYS[2], string.match(before, '^%d+'), before) end
  return { refused, wait and string.format('%.0f', wait) }
end
local after = ARGV[9]
if action == 'keep' then after = held and before or '' end
if action == 'free' then after = '' end
if after ~= '' then redis.call('ZADD', KEYS[2], string.match(after, '^%d+'), after) end

redis.call('HSET', KEYS[1], 'version', ARGV[1] + 1, 'json', ARGV[3], 'status', ARGV[4], 'block', after)
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[5])
redis.call('ZREM', KEYS[5], ARGV[5])
redis.call('ZADD', KEYS[6], ARGV[6], ARGV[5])
if ARGV[4] == 'CANCELLED' or ARGV[4] == 'REJECTED' then redis.call('ZREM', KEYS[14], ARGV[5]) elseif tonumber(ARGV[6]) > now then
  redis.call('ZADD', KEYS[14], ARGV[6], ARGV[5])
  -- The list lasts until its last booking begins; GT alone would leave a new one without an end.
  local lasts = string.format('%.0f', ARGV[6] - now)
  if redis.call('PEXPIRE', KEYS[14], lasts, 'NX') == 0 then redis.call('PEXPIRE', KEYS[14], lasts, 'GT') end
end
if action ~= 'keep' then redis.call('INCR', KEYS[8]) end
if ARGV[16] == 'forget' then redis.call('DEL', KEYS[10]) elseif ARGV[16] ~= '' then
  redis.call('SET', KEYS[10], ARGV[16], 'PX', ARGV[17])
end
outbox(KEYS[9], ARGV[19])
-- Without an endpoint nobody could be told of an event, now or later.
if ARGV[21] ~= '' and redis.call('EXISTS', KEYS[12]) == 1 then outbox(KEYS[9], ARGV[21]) end
if #KEYS > 14 and redis.call('EXISTS', KEYS[11]) == 1 then
  for at = 15, #KEYS do redis.call('SET', KEYS[at], ARGV[10 + at], 'PX', ARGV[18]) end
  outbox(KEYS[9], ARGV[20])
end
return { 'written' }

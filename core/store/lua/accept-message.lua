-- Accepts a message: answers a repeated request, refuses suppressed and capped recipients and a used-up quota, else writes the message, its
-- deliveries with their events, their places in the queue, the quota and the answer for repeats, all in one step.
-- Needs email-prelude.lua
-- KEYS 1-6 as in email-prelude.lua, 7 messages by time (zset), 8 suppressed (hash), 9 quota, 10 once, 11 idempotent,
--   12 mails of the day by cap and mailbox (hash)
-- ARGV 1 id, 2 json, 3 content, 4 purpose, 5 rank, 6 instant, 7 domain ms, 8 real ms when due, 9 recipients (JSON of [about, digest,
--   digest of the mailbox]),
--   10 quota of the day, 11 answer for repeats ('' without key), 12 once ('1' with key), 13 denied reason ('' to send),
--   14 'each' where a suppressed recipient is denied alone, 'all' where one refuses all, 15 'closed' where nothing can be sent,
--   16 caps that count (JSON of [name, most mails a day for a mailbox])
-- Returns {"accepted"}, {"repeated", answer}, {"once", id}, {"suppressed", n ...}, {"quota"}, {"closed"}.
local id, recipients, caps = ARGV[1], cjson.decode(ARGV[9]), cjson.decode(ARGV[16])

local function is_capped(mailbox)
  for _, cap in ipairs(caps) do
    if tonumber(redis.call('HGET', KEYS[12], cap[1] .. ':' .. mailbox) or '0') >= cap[2] then return true end
  end
  return false
end

if ARGV[11] ~= '' then
  local answer = redis.call('GET', KEYS[11])
  if answer then return { 'repeated', answer } end
end
if ARGV[12] == '1' then
  local known = redis.call('GET', KEYS[10])
  if known then return { 'once', known } end
end

local reasons, suppressed, wanted = {}, {}, 0
for n, recipient in ipairs(recipients) do
  if ARGV[13] ~= '' then
    reasons[n] = ARGV[13]
  elseif redis.call('HEXISTS', KEYS[8], recipient[2]) == 1 then
    reasons[n] = 'email_recipient_suppressed'
    suppressed[#suppressed + 1] = tostring(n - 1)
  elseif is_capped(recipient[3]) then
    reasons[n] = 'visitor_mail_limit'
  else
    wanted = wanted + 1
  end
end
if ARGV[14] == 'all' and #suppressed > 0 then return { 'suppressed', unpack(suppressed) } end
local used = tonumber(redis.call('GET', KEYS[9]) or '0')
if used + wanted > tonumber(ARGV[10]) and wanted > 0 then
  if ARGV[14] == 'all' then return { 'quota' } end
  for n in ipairs(recipients) do reasons[n] = reasons[n] or 'email_quota_exceeded' end
  wanted = 0
end
if ARGV[15] == 'closed' and wanted > 0 then return { 'closed' } end

local statuses, fields = {}, {}
for n, recipient in ipairs(recipients) do
  statuses[n] = reasons[n] and 'DENIED' or 'QUEUED'
  for _, value in ipairs({ 'about:' .. (n - 1), recipient[1], 'digest:' .. (n - 1), recipient[2] }) do fields[#fields + 1] = value end
end
redis.call('HSET', KEYS[1] .. id, 'json', ARGV[2], 'purpose', ARGV[4], 'rank', ARGV[5], 'quota', used, 'statuses', table.concat(statuses, ','), 'status', overall(statuses), unpack(fields))
if wanted > 0 then
  redis.call('HSET', KEYS[1] .. id, 'content', ARGV[3])
  redis.call('INCRBY', KEYS[9], wanted)
  for n, recipient in ipairs(recipients) do
    for _, cap in ipairs(reasons[n] and {} or caps) do redis.call('HINCRBY', KEYS[12], cap[1] .. ':' .. recipient[3], 1) end
  end
  redis.call('EXPIRE', KEYS[9], 172800)
  if #caps > 0 then redis.call('EXPIRE', KEYS[12], 172800) end
end
for n, status in ipairs(statuses) do
  local more = reasons[n] and ',"reason":' .. cjson.encode(reasons[n]) or ''
  happened(id, n - 1, { type = status, at = ARGV[6], ms = tonumber(ARGV[7]), more = more })
  if status == 'QUEUED' then redis.call('ZADD', KEYS[4] .. ARGV[5], ARGV[8], id .. ':' .. (n - 1)) end
end
redis.call('ZADD', KEYS[7], ARGV[7], id)
redis.call('ZREMRANGEBYSCORE', KEYS[7], '-inf', string.format('(%.0f', tonumber(ARGV[7]) - kept * 1000))
if ARGV[11] ~= '' then redis.call('SET', KEYS[11], ARGV[11], 'EX', 86400) end
if ARGV[12] == '1' then redis.call('SET', KEYS[10], id, 'EX', 34560000) end
return { 'accepted' }

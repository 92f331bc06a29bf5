-- Accepts a message. Answers a repeated request; refuses suppressed and capped recipients and an exhausted quota; otherwise writes the
-- message, its deliveries with their events and queue entries, the quota and the answer for repeats, all in one step.
-- Keys: those of email-prelude.lua, list (messages by time; zset), suppressed (hash), quota (of the day), once, idempotent, caps (mails
--   of the day by cap and mailbox; hash), leads (prefix)
-- Input: messageId, json, content, purpose, rank, instant, at (domain ms), due (real ms), recipients (each about, digest, mailbox: the
--   digest of the mailbox), quota (of the day), answer (for repeats; absent without an idempotency key) and keyDigest (of that key),
--   onceDigest (of a once-only key; absent without one), denied (reason; absent to send), refusesAll (a reason against one recipient
--   refuses the message, else only that delivery is denied), isClosed (the handle can't send), caps (that count; each name, max: mails a
--   day for a mailbox), leads (ids of those that the mail is about), isNotice (with a once-only key; the records of the leads name it)
-- Returns {"accepted", status, status of each delivery ...}, {"repeated", answer}, {"once", id}, {"erased"} (one of the leads is, or is
--   being erased), {"denied"}, {"suppressed", n ...}, {"quota"}, {"closed"}.
local id, recipients, caps = input.messageId, input.recipients, input.caps

-- A repetition after a lost connection changes nothing.
local known = redis.call('HGET', keys.messages .. id, 'statuses')
if known then return { 'accepted', overall(split(known)), unpack(split(known)) } end

local function isCapped(mailbox)
  for _, cap in ipairs(caps) do
    if tonumber(redis.call('HGET', keys.caps, cap.name .. ':' .. mailbox) or '0') >= cap.max then return true end
  end
  return false
end

if input.answer then
  local answer = redis.call('GET', keys.idempotent)
  if answer then return { 'repeated', answer } end
end
if input.onceDigest then
  local known = redis.call('GET', keys.once)
  if known then return { 'once', known } end
end
for _, lead in ipairs(input.leads) do
  local erased = redis.call('HGET', keys.leads .. lead, 'erased')
  if erased or redis.call('EXISTS', keys.leads .. lead) == 0 then return { 'erased' } end
end
if input.denied and input.refusesAll then return { 'denied' } end

local reasons, suppressed, wanted = {}, {}, 0
for n, recipient in ipairs(recipients) do
  if input.denied then
    reasons[n] = input.denied
  elseif redis.call('HEXISTS', keys.suppressed, recipient.digest) == 1 then
    reasons[n] = 'email_recipient_suppressed'
    suppressed[#suppressed + 1] = tostring(n - 1)
  elseif isCapped(recipient.mailbox) then
    reasons[n] = 'visitor_mail_limit'
  else
    wanted = wanted + 1
  end
end
if input.refusesAll and #suppressed > 0 then return { 'suppressed', unpack(suppressed) } end
local used = tonumber(redis.call('GET', keys.quota) or '0')
if used + wanted > input.quota and wanted > 0 then
  if input.refusesAll then return { 'quota' } end
  for n in ipairs(recipients) do reasons[n] = reasons[n] or 'email_quota_exceeded' end
  wanted = 0
end
if input.isClosed and wanted > 0 then return { 'closed' } end

local statuses, fields = {}, {}
for n, recipient in ipairs(recipients) do
  statuses[n] = reasons[n] and 'DENIED' or 'QUEUED'
  for _, value in ipairs({ 'about:' .. (n - 1), recipient.about, 'digest:' .. (n - 1), recipient.digest }) do fields[#fields + 1] = value end
end
redis.call('HSET', keys.messages .. id, 'json', input.json, 'purpose', input.purpose, 'rank', input.rank, 'quota', used, 'statuses', table.concat(statuses, ','), 'status', overall(statuses), unpack(fields))
if wanted > 0 then
  redis.call('HSET', keys.messages .. id, 'content', input.content)
  redis.call('INCRBY', keys.quota, wanted)
  for n, recipient in ipairs(recipients) do
    for _, cap in ipairs(reasons[n] and {} or caps) do redis.call('HINCRBY', keys.caps, cap.name .. ':' .. recipient.mailbox, 1) end
  end
  redis.call('EXPIRE', keys.quota, 172800)
  if #caps > 0 then redis.call('EXPIRE', keys.caps, 172800) end
end
for n, status in ipairs(statuses) do
  local more = reasons[n] and ',"reason":' .. cjson.encode(reasons[n]) or ''
  addEvent(id, n - 1, { type = status, at = input.instant, ms = input.at, more = more })
  if status == 'QUEUED' then redis.call('ZADD', keys.queues .. input.rank, input.due, id .. ':' .. (n - 1)) end
end
redis.call('ZADD', keys.list, input.at, id)
redis.call('ZREMRANGEBYSCORE', keys.list, '-inf', string.format('(%.0f', input.at - retentionSeconds * 1000))
if input.answer then
  redis.call('SET', keys.idempotent, input.answer, 'EX', 86400)
  redis.call('HSET', keys.messages .. id, 'idempotent', input.keyDigest)
end
if input.onceDigest then redis.call('SET', keys.once, id, 'EX', 34560000) end
for _, lead in ipairs(input.isNotice and input.leads or {}) do redis.call('HSET', keys.leads .. lead, 'mail:' .. id, input.onceDigest) end
return { 'accepted', overall(statuses), unpack(statuses) }

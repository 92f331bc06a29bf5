-- Prelude of every script. from(values, first): the values from this one on. `unpack` has a limit.
local function from(values, first)
  local found = {}
  for at = first, #values do found[#found + 1] = values[at] end
  return found
end

-- Writes a webhook event (key, content, retentionMs, endpoints, endpoint, audience, people) for the enabled endpoints of this moment, if
-- there are any. Returns whether it did.
local function putEvent(event)
  local audience = {}
  for _, id in ipairs(redis.call('ZRANGE', event.endpoints, 0, -1)) do
    if redis.call('HGET', event.endpoint .. id, 'status') ~= 'DISABLED' then audience[#audience + 1] = id end
  end
  if #audience == 0 then return false end
  redis.call('SET', event.audience, table.concat(audience, ' '), 'PX', event.retentionMs)
  redis.call('SET', event.key, event.content, 'PX', event.retentionMs)
  for _, person in ipairs(event.people) do
    redis.call('SADD', person, event.key)
    redis.call('PEXPIRE', person, event.retentionMs)
    -- Each event looks at two others: so at most about half of them have expired.
    for _, key in ipairs(redis.call('SRANDMEMBER', person, 2)) do
      if redis.call('EXISTS', key) == 0 then redis.call('SREM', person, key) end
    end
  end
  return true
end

-- outbox(key, jobs): writes jobs (id, json, perhaps event) into the outbox hash at key. A job that comes with an event is written with
-- it or not at all.
local function outbox(key, jobs)
  for _, job in ipairs(jobs) do
    if not job.event or putEvent(job.event) then redis.call('HSET', key, job.id, job.json) end
  end
end

-- bump(key, field): moves a counter, which is a string or the field of a hash.
local function bump(key, field)
  if not field then redis.call('INCR', key) else redis.call('HINCRBY', key, field, 1) end
end

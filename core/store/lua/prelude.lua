-- Prelude of every script. part(values, before, n, parts): the first `before` values are followed by parts of equal length; this is part n, from 0.
local function part(values, before, n, parts)
  local length, found = (#values - before) / parts, {}
  for at = 1, length do found[at] = values[before + n * length + at] end
  return found
end

-- Writes a webhook event (key, content, retentionMs, endpoints, optional person) if the handle has an endpoint. Returns whether it did.
local function put_event(event)
  if redis.call('EXISTS', event.endpoints) == 0 then return false end
  redis.call('SET', event.key, event.content, 'PX', event.retentionMs)
  if event.person then
    redis.call('SADD', event.person, event.key)
    redis.call('PEXPIRE', event.person, event.retentionMs)
  end
  return true
end

-- outbox(key, jobs): writes jobs (id, json, perhaps event) into the outbox hash at key. A job that comes with an event is written with
-- it or not at all.
local function outbox(key, jobs)
  for _, job in ipairs(jobs) do
    if not job.event or put_event(job.event) then redis.call('HSET', key, job.id, job.json) end
  end
end

-- bump(key, field): moves a counter, which is a string or the field of a hash.
local function bump(key, field)
  if not field then redis.call('INCR', key) else redis.call('HINCRBY', key, field, 1) end
end

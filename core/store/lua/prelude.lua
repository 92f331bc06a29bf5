-- Writes a webhook event (key, content, retentionMs, endpoints, perhaps person) where there is an endpoint. Returns whether it did.
local function put_event(event)
  if redis.call('EXISTS', event.endpoints) == 0 then return false end
  redis.call('SET', event.key, event.content, 'PX', event.retentionMs)
  if event.person then
    redis.call('SADD', event.person, event.key)
    redis.call('PEXPIRE', event.person, event.retentionMs)
  end
  return true
end

-- Stands before every script. outbox(key, jobs): writes jobs, a JSON array of [id, job as JSON, its event or null], into the outbox
-- hash at key. A job that comes with an event is written with it or not at all.
local function outbox(key, jobs)
  if jobs == '[]' then return end
  for _, job in ipairs(cjson.decode(jobs)) do
    if job[3] == cjson.null or put_event(job[3]) then redis.call('HSET', key, job[1], job[2]) end
  end
end

-- bump(key, field): moves a counter, which is a string or the field of a hash.
local function bump(key, field)
  if field == '' then redis.call('INCR', key) else redis.call('HINCRBY', key, field, 1) end
end

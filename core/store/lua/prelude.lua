-- Stands before every script. outbox(key, jobs): writes jobs, a JSON array of [id, job as JSON], into the outbox hash at key.
local function outbox(key, jobs)
  if jobs == '[]' then return end
  for _, job in ipairs(cjson.decode(jobs)) do redis.call('HSET', key, job[1], job[2]) end
end

-- bump(key, field): moves a counter, which is a string or the field of a hash.
local function bump(key, field)
  if field == '' then redis.call('INCR', key) else redis.call('HINCRBY', key, field, 1) end
end

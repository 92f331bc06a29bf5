-- Brings the stored objects of a calendar to a new reading, unless another one was stored since that reading started.
-- Keys: objects (hash object -> JSON, "" -> the last reading), draft (hash of the changed objects and the new reading)
-- Input: last (the reading that was stored at the start; "" without one), isWhole (true: the draft has all objects), removed (objects),
--   keepSeconds
-- Returns "written", or "outdated" without any change.
if (redis.call('HGET', keys.objects, '') or '') ~= input.last then
  redis.call('DEL', keys.draft)
  return 'outdated'
end
if input.isWhole then
  redis.call('RENAME', keys.draft, keys.objects)
else
  for _, object in ipairs(input.removed) do redis.call('HDEL', keys.objects, object) end
  local flat = redis.call('HGETALL', keys.draft)
  for at = 1, #flat, 2 do redis.call('HSET', keys.objects, flat[at], flat[at + 1]) end
  redis.call('DEL', keys.draft)
end
redis.call('EXPIRE', keys.objects, input.keepSeconds)
return 'written'

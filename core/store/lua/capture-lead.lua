-- Writes a new lead or the next version of a known one, with the trigger that it is.
-- Keys: recent (lead of this person, page and campaign), lead, list, person (leads of the person), outbox
-- Input: recentId (that was read; absent for none), version (that was read; 0: the lead is new), leadId, json, at (ms of the capture,
--   which orders the list if it is the first), recentMs (for which the lead is recent), jobs
-- Returns "written", or "changed" when another capture came between.
if not input.recentId then
  if not redis.call('SET', keys.recent, input.leadId, 'NX', 'PX', input.recentMs) then return 'changed' end
else
  if redis.call('GET', keys.recent) ~= input.recentId then return 'changed' end
  if input.version > 0 and tonumber(redis.call('HGET', keys.lead, 'version')) ~= input.version then return 'changed' end
  if input.recentId ~= input.leadId then redis.call('SET', keys.recent, input.leadId, 'PX', input.recentMs) end
end
redis.call('HSET', keys.lead, 'version', input.version + 1, 'json', input.json)
redis.call('ZADD', keys.list, 'NX', input.at, input.leadId)
redis.call('SADD', keys.person, input.leadId)
outbox(keys.outbox, input.jobs)
return 'written'

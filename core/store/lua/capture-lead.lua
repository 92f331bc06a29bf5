-- Writes a new lead or the next version of a known one, with its trigger.
-- Keys: recent (lead of this person, page and campaign), lead, list, person (leads of the person), outbox
-- Input: recentId (as read; absent for none), version (as read; 0: the lead is new), leadId, json, at (ms of the capture,
--   which orders the list if it is the first), recentMs (for which the lead is recent), jobs
-- Returns "written", or "changed" if another capture was written since the read.
local version, json = unpack(redis.call('HMGET', keys.lead, 'version', 'json'))
-- A repetition after a lost connection.
if json == input.json and tonumber(version) == input.version + 1 then return 'written' end
if not input.recentId then
  if not redis.call('SET', keys.recent, input.leadId, 'NX', 'PX', input.recentMs) then return 'changed' end
else
  if redis.call('GET', keys.recent) ~= input.recentId then return 'changed' end
  if input.version > 0 and tonumber(version) ~= input.version then return 'changed' end
  if input.recentId ~= input.leadId then redis.call('SET', keys.recent, input.leadId, 'PX', input.recentMs) end
end
redis.call('HSET', keys.lead, 'version', input.version + 1, 'json', input.json)
redis.call('ZADD', keys.list, 'NX', input.at, input.leadId)
redis.call('SADD', keys.person, input.leadId)
outbox(keys.outbox, input.jobs)
return 'written'

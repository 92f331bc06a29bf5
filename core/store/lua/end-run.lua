-- Writes the last entry of a run, which closes its stream: the id is above all that a worker writes. Deletes the run's fields, including
-- the visitor's questions.
-- Keys: chunks, readers, alive, fields
-- Input: state, keepMs, condition ("anyway"; "unread": no reader has a lease; "silent": the worker's heartbeat has expired; "written": the
--   newest entry's id is newest), newest, chunk (the last one, which is stored with the end; absent for none)
-- Returns "ended", or "unknown", "already", "refused" when the condition fails.
if hasEnded then return 'already' end
if input.condition == 'unread' and isRead then return 'refused' end
if input.condition == 'silent' and redis.call('EXISTS', keys.alive) == 1 then return 'refused' end
if input.condition == 'written' and newest[1] ~= input.newest then return 'refused' end
if generation == 0 then number = 0 end
if input.chunk then
  number = number + 1
  redis.call('XADD', keys.chunks, generation .. '-' .. number, 'c', input.chunk)
end
redis.call('XADD', keys.chunks, '4294967295-' .. number, 'c', input.state)
redis.call('PEXPIRE', keys.chunks, input.keepMs)
redis.call('DEL', keys.fields)
return 'ended'

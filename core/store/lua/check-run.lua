-- A worker's heartbeat for its run. Reports whether the run is still the worker's, and whether it has readers.
-- Keys: chunks, readers, alive
-- Input: generation, lostMs (until the run counts as lost), keepMs
-- Returns "read" | "unread", or "unknown", "superseded", or how the run has ended.
if hasEnded then return newest[2][2] end
if generation ~= input.generation then return 'superseded' end
redis.call('SET', keys.alive, input.generation, 'PX', input.lostMs)
redis.call('PEXPIRE', keys.chunks, input.keepMs)
return isLeft and 'unread' or 'read'

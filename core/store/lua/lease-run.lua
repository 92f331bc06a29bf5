-- Renews or ends a web process's lease on reading a run: it joins, stays, or (with a short lease or none) leaves.
-- Keys: chunks, readers, alive
-- Input: inbox, leaseMs (from now, TIME), keepMs
-- Returns {"read" | "unread", ms until the run counts as lost, 0 if it does, id of the newest entry}, "unread" if no lease is left; or
-- {"unknown"}.
redis.call('ZADD', keys.readers, now + input.leaseMs, input.inbox)
redis.call('PEXPIRE', keys.readers, input.keepMs)
local read = redis.call('ZCOUNT', keys.readers, '(' .. now, '+inf') > 0
return { read and 'read' or 'unread', math.max(0, redis.call('PTTL', keys.alive)), newest[1] }

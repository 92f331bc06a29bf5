-- Renews or ends a web process's lease on reading a run: it joins, stays, or (with a short lease or none) leaves.
-- Keys: chunks, readers, alive
-- Input: reader, leaseMs (from now, TIME), keepMs
-- Returns the ms until the run counts as lost, 0 if it does; or "unknown".
redis.call('ZADD', keys.readers, now + input.leaseMs, input.reader)
redis.call('PEXPIRE', keys.readers, input.keepMs)
return math.max(0, redis.call('PTTL', keys.alive))

-- Records that a page was bought, once per checkout, with the resulting jobs.
-- Keys: purchase, purchases (of its page), buyer (checkouts of the buyer), outbox
-- Input: json, sessionId, ms, keepSeconds, hasBuyer, jobs
-- Returns "written", or "known" if it was recorded before.
if not redis.call('SET', keys.purchase, input.json, 'NX', 'EX', input.keepSeconds) then return 'known' end
redis.call('ZREMRANGEBYSCORE', keys.purchases, '-inf', input.ms - input.keepSeconds * 1000)
redis.call('ZADD', keys.purchases, input.ms, input.sessionId)
redis.call('EXPIRE', keys.purchases, input.keepSeconds)
if input.hasBuyer then
  redis.call('SADD', keys.buyer, input.sessionId)
  redis.call('EXPIRE', keys.buyer, input.keepSeconds)
end
outbox(keys.outbox, input.jobs)
return 'written'

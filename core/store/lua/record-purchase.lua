-- Notes that a page was bought, once for each checkout, with what it causes.
-- Keys: purchase, outbox
-- Input: json, keepSeconds, jobs
-- Returns "written", or "known" where it was noted before.
if not redis.call('SET', keys.purchase, input.json, 'NX', 'EX', input.keepSeconds) then return 'known' end
outbox(keys.outbox, input.jobs)
return 'written'

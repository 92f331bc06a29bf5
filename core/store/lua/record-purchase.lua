-- Notes that a page was bought, once for each checkout, with what it causes.
-- KEYS 1 purchase, 2 outbox
-- ARGV 1 json, 2 seconds to keep it, 3 jobs
-- Returns "written", or "known" where it was noted before.
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return 'known' end
outbox(KEYS[2], ARGV[3])
return 'written'

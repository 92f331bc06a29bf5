-- Notes a conversion of a lead, with what it causes.
-- KEYS 1 conversions of the lead (hash), 2 outbox
-- ARGV 1 conversion id, 2 json, 3 jobs
-- Returns nothing.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
outbox(KEYS[2], ARGV[3])

-- Notes that a rule will send to a lead, once for ever, and writes the job that does it, or its name among the far sends.
-- KEYS 1 sends of the rule (hash lead -> state), 2 counts of the rule, 3 outbox, 4 far sends of the handle, 5 record of the rule
-- ARGV 1 lead id, 2 jobs, 3 name of the far send ('' where it is a job), 4 domain ms when it is due
-- Returns "scheduled", "known" when the rule has this lead already, or "retired" when it was deleted: its record has an end then.
if redis.call('TTL', KEYS[5]) ~= -1 then return 'retired' end
if redis.call('HSETNX', KEYS[1], ARGV[1], 'waiting') == 0 then return 'known' end
redis.call('HINCRBY', KEYS[2], 'waiting', 1)
outbox(KEYS[3], ARGV[2])
if ARGV[3] ~= '' then redis.call('ZADD', KEYS[4], ARGV[4], ARGV[3]) end
return 'scheduled'

-- Records that a rule will send to a lead, once for ever, and writes the job that sends it, or an entry of the delayed sends.
-- Keys: sends (of the rule; hash lead -> state), counts (of the rule), outbox, delayed (sends of the handle), rule
-- Input: leadId, jobs, delayedName (absent for a job), due (domain ms)
-- Returns nothing. Does nothing if the rule has this lead already, or was deleted: its record expires then.
if redis.call('TTL', keys.rule) ~= -1 or redis.call('HSETNX', keys.sends, input.leadId, 'waiting') == 0 then return end
redis.call('HINCRBY', keys.counts, 'waiting', 1)
outbox(keys.outbox, input.jobs)
if input.delayedName then redis.call('ZADD', keys.delayed, input.due, input.delayedName) end

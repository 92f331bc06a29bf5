-- Records a conversion of a lead, with its jobs.
-- Keys: lead, conversions (of the lead; hash), outbox
-- Input: conversionId, json, jobs
-- Returns "written", or "gone" if there is no such lead: nothing of an erased one is written.
if redis.call('EXISTS', keys.lead) == 0 then return 'gone' end
redis.call('HSET', keys.conversions, input.conversionId, input.json)
outbox(keys.outbox, input.jobs)
return 'written'

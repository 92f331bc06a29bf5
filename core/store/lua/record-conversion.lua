-- Records a conversion of a lead, with its jobs.
-- Keys: conversions (of the lead; hash), outbox
-- Input: conversionId, json, jobs
-- Returns nothing.
redis.call('HSET', keys.conversions, input.conversionId, input.json)
outbox(keys.outbox, input.jobs)

-- Records how a rule's send to a lead ended. Idempotent.
-- Keys: sends (of the rule), counts (of the rule)
-- Input: leadId, state ("sent" or "denied")
-- Returns nothing.
if redis.call('HGET', keys.sends, input.leadId) ~= 'waiting' then return end
redis.call('HSET', keys.sends, input.leadId, input.state)
redis.call('HINCRBY', keys.counts, 'waiting', -1)
redis.call('HINCRBY', keys.counts, input.state, 1)

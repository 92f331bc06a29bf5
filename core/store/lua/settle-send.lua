-- Notes how a rule's send to a lead ended. Repeating it changes nothing.
-- KEYS 1 sends of the rule, 2 counts of the rule   ARGV 1 lead id, 2 "sent" or "denied"
-- Returns "settled", or the state that is there.
local state = redis.call('HGET', KEYS[1], ARGV[1])
if state ~= 'waiting' then return state or 'unknown' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[2], 'waiting', -1)
redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
return 'settled'

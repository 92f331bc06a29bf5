-- Tries a lead's verification code. The right one makes the lead verified, with the trigger that this is; the last wrong one ends it.
-- The right one is right again until it expires, and then changes nothing.
-- Keys: code (hash round, wrong, used), lead, outbox
-- Input: isRight, maxWrong (codes; the last of them ends it), version (that was read), json (of the verified lead), jobs
-- Returns "verified", "wrong", "ended", "unknown", or "changed" when the lead is another version by now.
if redis.call('EXISTS', keys.code) == 0 then return 'unknown' end
if input.isRight then
  if redis.call('HEXISTS', keys.code, 'used') == 1 then return 'verified' end
  if tonumber(redis.call('HGET', keys.lead, 'version') or 0) ~= input.version then return 'changed' end
  redis.call('HSET', keys.code, 'used', 1)
  redis.call('HSET', keys.lead, 'version', input.version + 1, 'json', input.json)
  outbox(keys.outbox, input.jobs)
  return 'verified'
end
if redis.call('HINCRBY', keys.code, 'wrong', 1) < input.maxWrong then return 'wrong' end
redis.call('DEL', keys.code)
return 'ended'

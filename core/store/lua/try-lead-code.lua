-- Tries a lead's verification code. The right one makes the lead verified, with its trigger; the last wrong one ends the code.
-- Until it expires, the right code is accepted again without effect.
-- Keys: code (hash round, wrong, used), lead, outbox
-- Input: round (of the code as read; absent for none), isRight, maxWrong (codes; the last of them ends it), version (as read), json (of the
--   verified lead), jobs
-- Returns "verified", "wrong", also without a code, or "changed" if the lead has another version or another code by now.
if redis.call('EXISTS', keys.code) == 0 then return 'wrong' end
if redis.call('HGET', keys.code, 'round') ~= input.round then return 'changed' end
if input.isRight then
  if redis.call('HEXISTS', keys.code, 'used') == 1 then return 'verified' end
  if tonumber(redis.call('HGET', keys.lead, 'version') or 0) ~= input.version then return 'changed' end
  redis.call('HSET', keys.code, 'used', 1)
  redis.call('HSET', keys.lead, 'version', input.version + 1, 'json', input.json)
  outbox(keys.outbox, input.jobs)
  return 'verified'
end
if redis.call('HINCRBY', keys.code, 'wrong', 1) >= input.maxWrong then redis.call('DEL', keys.code) end
return 'wrong'

-- Redeems an attempt to sign in or to pair a desktop, once. Too many wrong proofs end it.
-- Keys: attempt (hash user, email, device, status of a pairing, wrong)
-- Input: isRight (the proof: a code or a verifier), maxWrong (proofs; the last of them ends the attempt)
-- Returns {"unknown"}, {"wrong"}, {"ended"}, the status of a pairing that is not authorised, {"pending"} or {"denied"}, or else
--   {"authorised", user id, email, device}. An address without a user has no right code.
local status, user, email, device = unpack(redis.call('HMGET', keys.attempt, 'status', 'user', 'email', 'device'))
if status == 'redeemed' or redis.call('EXISTS', keys.attempt) == 0 then return { 'unknown' } end
if not input.isRight or user == '' then
  if redis.call('HINCRBY', keys.attempt, 'wrong', 1) < input.maxWrong then return { 'wrong' } end
  redis.call('DEL', keys.attempt)
  return { 'ended' }
end
if status and status ~= 'authorised' then return { status } end
-- A redeemed pairing is kept, so that its user can deny it until its session has started.
if status then
  redis.call('HSET', keys.attempt, 'status', 'redeemed')
else
  redis.call('DEL', keys.attempt)
end
return { 'authorised', user, email, device or '' }

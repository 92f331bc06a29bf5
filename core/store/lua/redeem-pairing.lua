-- Redeems a pairing attempt, once. Deletes the attempt after success, and after too many wrong proofs.
-- Keys: attempt
-- Input: isRight (the proof), maxWrong (proofs; the last of them ends the attempt)
-- Returns {"unknown"}, {"wrong"}, {"pending"}, {"denied"} or {"authorised", user id, email, device}.
local status, user, email, device = unpack(redis.call('HMGET', keys.attempt, 'status', 'user', 'email', 'device'))
if not status then return { 'unknown' } end
if not input.isRight then
  if redis.call('HINCRBY', keys.attempt, 'wrong', 1) >= input.maxWrong then redis.call('DEL', keys.attempt) end
  return { 'wrong' }
end
if status ~= 'authorised' then return { status } end
redis.call('DEL', keys.attempt)
return { status, user, email, device }

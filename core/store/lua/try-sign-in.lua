-- Tries a sign-in code. The right one works once; too many wrong ones end the sign-in.
-- Keys: signIn
-- Input: isRight, maxWrong (codes; the last of them ends the sign-in)
-- Returns {"unknown"}, {"wrong"}, {"ended"} or {"right", user id, email}. An address without a user has no right code.
local email, user = unpack(redis.call('HMGET', keys.signIn, 'email', 'user'))
if not email then return { 'unknown' } end
if input.isRight and user ~= '' then
  redis.call('DEL', keys.signIn)
  return { 'right', user, email }
end
if redis.call('HINCRBY', keys.signIn, 'wrong', 1) < input.maxWrong then return { 'wrong' } end
redis.call('DEL', keys.signIn)
return { 'ended' }

-- Tries a sign-in code, once where it is right; too many wrong ones end the sign-in.
-- KEYS 1 sign-in   ARGV 1 "right" or "wrong" code, 2 number of wrong codes that ends the sign-in
-- Returns {"unknown"}, {"wrong"}, {"ended"} or {"right", user id, email}. An address without a user has no right code.
local email, user = unpack(redis.call('HMGET', KEYS[1], 'email', 'user'))
if not email then return { 'unknown' } end
if ARGV[1] == 'right' and user ~= '' then
  redis.call('DEL', KEYS[1])
  return { 'right', user, email }
end
if redis.call('HINCRBY', KEYS[1], 'wrong', 1) < tonumber(ARGV[2]) then return { 'wrong' } end
redis.call('DEL', KEYS[1])
return { 'ended' }

-- Redeems a pairing attempt, once: what is handed out is gone, and so is an attempt that was tried with too many wrong proofs.
-- KEYS 1 attempt   ARGV 1 "right" or "wrong" proof, 2 number of wrong proofs that ends the attempt
-- Returns {"unknown"}, {"wrong"}, {"pending"}, {"denied"} or {"authorised", user id, email, device}.
local status, user, email, device = unpack(redis.call('HMGET', KEYS[1], 'status', 'user', 'email', 'device'))
if not status then return { 'unknown' } end
if ARGV[1] ~= 'right' then
  if redis.call('HINCRBY', KEYS[1], 'wrong', 1) >= tonumber(ARGV[2]) then redis.call('DEL', KEYS[1]) end
  return { 'wrong' }
end
if status ~= 'authorised' then return { status } end
redis.call('DEL', KEYS[1])
return { status, user, email, device }

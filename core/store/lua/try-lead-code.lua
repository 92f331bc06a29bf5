-- Tries a lead's verification code. The right one makes the lead verified, with the trigger that this is; the last wrong one ends it.
-- The right one is right again until it expires, and then changes nothing.
-- KEYS 1 code (hash round, wrong, used), 2 lead, 3 outbox
-- ARGV 1 "right" or "wrong", 2 number of wrong codes that ends it, 3 version that was read, 4 json of the verified lead, 5 jobs
-- Returns "verified", "wrong", "ended", "unknown", or "changed" when the lead is another version by now.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'unknown' end
if ARGV[1] == 'right' then
  if redis.call('HEXISTS', KEYS[1], 'used') == 1 then return 'verified' end
  if redis.call('HGET', KEYS[2], 'version') ~= ARGV[3] then return 'changed' end
  redis.call('HSET', KEYS[1], 'used', 1)
  redis.call('HSET', KEYS[2], 'version', ARGV[3] + 1, 'json', ARGV[4])
  outbox(KEYS[3], ARGV[5])
  return 'verified'
end
if redis.call('HINCRBY', KEYS[1], 'wrong', 1) < tonumber(ARGV[2]) then return 'wrong' end
redis.call('DEL', KEYS[1])
return 'ended'

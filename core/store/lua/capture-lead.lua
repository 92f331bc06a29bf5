-- Writes a new lead or the next version of a known one, with the trigger that it is.
-- KEYS 1 recent lead of this person, page and campaign, 2 lead, 3 list, 4 leads of the person, 5 outbox
-- ARGV 1 recent lead id that was read ("" none), 2 version that was read ("0" none: the lead is new), 3 lead id, 4 json,
--      5 ms of the capture, which orders the list if it is the first, 6 ms for which the lead is recent, 7 jobs
-- Returns "written", or "changed" when another capture came between.
if ARGV[1] == '' then
  if not redis.call('SET', KEYS[1], ARGV[3], 'NX', 'PX', ARGV[6]) then return 'changed' end
else
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'changed' end
  if ARGV[2] ~= '0' and redis.call('HGET', KEYS[2], 'version') ~= ARGV[2] then return 'changed' end
  if ARGV[1] ~= ARGV[3] then redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[6]) end
end
redis.call('HSET', KEYS[2], 'version', ARGV[2] + 1, 'json', ARGV[4])
redis.call('ZADD', KEYS[3], 'NX', ARGV[5], ARGV[3])
redis.call('SADD', KEYS[4], ARGV[3])
outbox(KEYS[5], ARGV[7])
return 'written'

-- Decides whether a new lead is mailed to its owners at once or in the digest of the hour; a lead is decided once.
-- KEYS 1 lead, 2 notices of the hour (hash count, start), 3 digests (prefix; each a list of lead ids)
-- ARGV 1 lead id, 2 real ms now, 3 most mails of an hour, 4 real ms of an hour, 5 real ms for which a digest is kept
-- Returns "gone" for a lead that was erased, "mail", or the round of its digest: the real ms at which the hour began.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
local notice = redis.call('HGET', KEYS[1], 'notice')
if notice then return notice end
local count = redis.call('HINCRBY', KEYS[2], 'count', 1)
if count == 1 then
  redis.call('HSET', KEYS[2], 'start', ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
notice = 'mail'
if count > tonumber(ARGV[3]) then
  notice = redis.call('HGET', KEYS[2], 'start')
  redis.call('RPUSH', KEYS[3] .. notice, ARGV[1])
  redis.call('PEXPIRE', KEYS[3] .. notice, ARGV[5])
end
redis.call('HSET', KEYS[1], 'notice', notice)
return notice

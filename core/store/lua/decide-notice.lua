-- Decides, once per field of a record, whether owners are mailed about it at once or in the digest of the hour. The hour begins and ends by
-- the clock of Redis: the digest of an hour that began by a process's clock, late or paused, could be mailed before the hour's last items.
-- Keys: record (hash), notices (of the hour; hash count, start), digests (prefix; each a list of items)
-- Input: field, item (of the digest), maxMails (of an hour), hourMs (real ms of an hour), keepMs (for which a digest is stored)
-- Returns "gone" for a record that is erased or being erased, "mail", or the id of its digest: the real ms at which the hour began.
if redis.call('EXISTS', keys.record) == 0 or redis.call('HEXISTS', keys.record, 'erased') == 1 then return 'gone' end
local notice = redis.call('HGET', keys.record, input.field)
if notice then return notice end
local count = redis.call('HINCRBY', keys.notices, 'count', 1)
if count == 1 then
  local time = redis.call('TIME')
  redis.call('HSET', keys.notices, 'start', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
  redis.call('PEXPIRE', keys.notices, input.hourMs)
end
notice = 'mail'
if count > input.maxMails then
  notice = redis.call('HGET', keys.notices, 'start')
  redis.call('RPUSH', keys.digests .. notice, input.item)
  redis.call('PEXPIRE', keys.digests .. notice, input.keepMs)
end
redis.call('HSET', keys.record, input.field, notice)
return notice

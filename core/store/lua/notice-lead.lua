-- Decides, once per lead, whether its owners are mailed at once or in the digest of the hour. The hour begins and ends by the clock of
-- Redis: the digest of an hour that began by a process's clock, late or paused, could be mailed before the hour's last leads.
-- Keys: lead, notices (of the hour; hash count, start), digests (prefix; each a list of lead ids)
-- Input: leadId, maxMails (of an hour), hourMs (real ms of an hour), keepMs (for which a digest is stored)
-- Returns "gone" for a lead that is erased or being erased, "mail", or the id of its digest: the real ms at which the hour began.
if redis.call('EXISTS', keys.lead) == 0 or redis.call('HEXISTS', keys.lead, 'erased') == 1 then return 'gone' end
local notice = redis.call('HGET', keys.lead, 'notice')
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
  redis.call('RPUSH', keys.digests .. notice, input.leadId)
  redis.call('PEXPIRE', keys.digests .. notice, input.keepMs)
end
redis.call('HSET', keys.lead, 'notice', notice)
return notice

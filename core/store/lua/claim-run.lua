-- Claims a run for one attempt of its job, once, and fences off earlier attempts: their entries have lower ids, which the stream rejects.
-- Keys: chunks, readers, alive
-- Input: generation, token (of the attempt), lostMs (until the run counts as lost), keepMs
-- Returns "claimed", or the reason for a refusal: "unknown", "ended", "superseded", "sent" (chunks were sent), "unread" (all readers left).
if hasEnded then return 'ended' end
local repeated = generation == input.generation and newest[2][2] == input.token
if generation >= input.generation and not repeated then return 'superseded' end
if generation > 0 and number > 0 then return 'sent' end
if isLeft then return 'unread' end
if not repeated then redis.call('XADD', keys.chunks, input.generation .. '-0', 'c', input.token) end
redis.call('PEXPIRE', keys.chunks, input.keepMs)
redis.call('SET', keys.alive, input.generation, 'PX', input.lostMs)
return 'claimed'

-- Replaces, confirms or clears the busy times of a handle, unless others were stored since those were read that decided about it.
-- Keys: busy (zset "from:to" by from), draft (of the next ones), state (hash at, source), times (counter)
-- Input: last (source as read; absent: any), change ("replace" them by the draft, "empty" them, or "confirm" them), source (of the calendar
--   states; absent: no calendar is selected), readAt (real ms of the reading)
-- Returns "written", or "outdated" without any change.
if input.last and (redis.call('HGET', keys.state, 'source') or '') ~= input.last then
  redis.call('DEL', keys.draft)
  return 'outdated'
end
if input.change == 'replace' then
  redis.call('RENAME', keys.draft, keys.busy)
  redis.call('PERSIST', keys.busy)
elseif input.change == 'empty' then
  redis.call('DEL', keys.busy)
end
if input.change ~= 'confirm' then redis.call('INCR', keys.times) end
if input.source then
  redis.call('HSET', keys.state, 'at', input.readAt, 'source', input.source)
else
  redis.call('DEL', keys.state)
end
return 'written'

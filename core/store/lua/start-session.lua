-- Adds a session of a user and drops the expired ones; beyond the limit the least recently used one is dropped.
-- Keys: sessions (of the user; hash)
-- Input: sessionId, json, now and expiresAt (real ms), max (sessions of a user)
-- Returns nothing.
local last, live = input.expiresAt, {}

local function drop(id) redis.call('HDEL', keys.sessions, id, 'used:' .. id) end

local fields = redis.call('HGETALL', keys.sessions)
for at = 1, #fields, 2 do
  local id = fields[at]
  if string.sub(id, 1, 5) ~= 'used:' then
    local expires = cjson.decode(fields[at + 1]).expiresAt
    if expires <= input.now then drop(id) else
      live[#live + 1] = { id = id, used = tonumber(redis.call('HGET', keys.sessions, 'used:' .. id)) or 0 }
      last = math.max(last, expires)
    end
  end
end
table.sort(live, function(one, other) return one.used < other.used end)
for at = 1, #live - input.max + 1 do drop(live[at].id) end

redis.call('HSET', keys.sessions, input.sessionId, input.json, 'used:' .. input.sessionId, input.now)
redis.call('PEXPIREAT', keys.sessions, string.format('%.0f', last))

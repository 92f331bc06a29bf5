-- Adds a session of a user and drops those that have expired; of too many the one that was unused for longest goes first.
-- KEYS 1 sessions of the user (hash)
-- ARGV 1 session id, 2 JSON of the session, 3 real ms now, 4 real ms at which it expires, 5 most sessions of a user
-- Returns the number of sessions that the user has now.
local now, last, live = tonumber(ARGV[3]), tonumber(ARGV[4]), {}

local function drop(id) redis.call('HDEL', KEYS[1], id, 'used:' .. id) end

local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local id = fields[at]
  if string.sub(id, 1, 5) ~= 'used:' then
    local expires = cjson.decode(fields[at + 1]).expiresAt
    if expires <= now then drop(id) else
      live[#live + 1] = { id = id, used = tonumber(redis.call('HGET', KEYS[1], 'used:' .. id)) or 0 }
      last = math.max(last, expires)
    end
  end
end
table.sort(live, function(one, other) return one.used < other.used end)
for at = 1, #live - tonumber(ARGV[5]) + 1 do drop(live[at].id) end

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], 'used:' .. ARGV[1], ARGV[3])
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
return redis.call('HLEN', KEYS[1]) / 2

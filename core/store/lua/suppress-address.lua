-- Suppresses an address, or replaces a suppression by one that says less.
-- Keys: suppressed (hash), suppressions (by time; zset)
-- Input: digest (of the address), json (the suppression), at (domain ms), replaced (the suppression to replace; absent to add one)
-- Returns the stored suppression, or "gone" if the one to replace is.
if not input.replaced then return suppress(input.digest, input.json, input.at) end
if redis.call('HGET', keys.suppressed, input.digest) ~= input.replaced then return 'gone' end
redis.call('HSET', keys.suppressed, input.digest, input.json)
return input.json

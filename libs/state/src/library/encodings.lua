-- Encodings of small hashes and sorted sets. Redis stores a small one as a list and searches a field or member from the
-- start of the list, unless a value or member has more than 64 bytes.
local Encodings = {}

local function long_text() return string.rep('|', 65) end

-- Stores the hash as a table, by a field with an empty name. Cheapest before the other fields are written.
function Encodings.hash_as_table(hash) redis.call('HSET', hash, '', long_text()) end

-- Stores a non-empty sorted set as a skip list, until the set is empty or Redis loads it from disk. The long member
-- that changes the encoding is removed at once.
function Encodings.zset_as_skip_list(zset)
  redis.call('ZADD', zset, 0, long_text())
  redis.call('ZREM', zset, long_text())
end

return Encodings

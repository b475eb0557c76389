-- Hashes of which many fields change at once.
local Hashes = {}

-- `kept`: flat list of fields and values; `gone`: list of fields. Either may be empty.
function Hashes.write(hash, kept, gone)
  if kept[1] then redis.call('HSET', hash, unpack(kept)) end
  if gone[1] then redis.call('HDEL', hash, unpack(gone)) end
end

return Hashes

-- Hashes that are read or changed as a whole.
local Hashes = {}

-- `kept`: flat list of fields and values; `gone`: list of fields. Either may be empty.
function Hashes.write(hash, kept, gone)
  if kept[1] then redis.call('HSET', hash, unpack(kept)) end
  if gone[1] then redis.call('HDEL', hash, unpack(gone)) end
end

-- Writes the fields of a table; those that are nil are left out.
function Hashes.set(hash, fields)
  local flat = {}
  for name, value in pairs(fields) do
    table.insert(flat, name)
    table.insert(flat, value)
  end
  redis.call('HSET', hash, unpack(flat))
end

-- All fields by name, as texts.
function Hashes.all(hash)
  local fields, flat = {}, redis.call('HGETALL', hash)
  for position = 1, #flat, 2 do fields[flat[position]] = flat[position + 1] end
  return fields
end

return Hashes

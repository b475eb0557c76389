-- Hashes that are read or changed as a whole.
local Hashes = {}

-- `kept`: flat list of fields and values; `gone`: list of fields. Either may be empty.
function Hashes.write(hash, kept, gone)
  if kept[1] then redis.call('HSET', hash, unpack(kept)) end
  if gone[1] then redis.call('HDEL', hash, unpack(gone)) end
end

-- Writes the fields of a table that are not nil.
function Hashes.set(hash, fields)
  local flat = {}
  for name, value in pairs(fields) do
    table.insert(flat, name)
    table.insert(flat, value)
  end
  redis.call('HSET', hash, unpack(flat))
end

-- Writes fields to a hash and to `record`, the table of the hash, or nil. True is stored as 1, false deletes the field.
function Hashes.store(hash, record, fields)
  -- The nil fields reserve the memory that most calls need, so that the table need not grow.
  local kept, count, gone = { nil, nil, nil, nil, nil, nil, nil, nil }, 0, nil
  for name, value in next, fields do
    if value == false then
      gone = gone or {}
      gone[#gone + 1] = name
    else
      kept[count + 1], kept[count + 2] = name, value == true and 1 or value
      count = count + 2
    end
  end
  if count > 0 then redis.call('HSET', hash, unpack(kept, 1, count)) end
  if gone then redis.call('HDEL', hash, unpack(gone)) end
  if not record then return end
  for name, value in next, fields do record[name] = value end
end

-- All fields by name, as texts.
function Hashes.all(hash)
  local fields, flat = {}, redis.call('HGETALL', hash)
  for position = 1, #flat, 2 do fields[flat[position]] = flat[position + 1] end
  return fields
end

return Hashes

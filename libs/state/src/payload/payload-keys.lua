-- Payloads of one job, under a separate root.
local PayloadKeys = {}

PayloadKeys.HEADER_FIELDS = 3

-- Hash: count, bytes, at and the chunks 0..count-1.
function PayloadKeys.item(tx, item) return tx.root .. 'item:' .. item end

function PayloadKeys.bytes(tx, item) return tonumber(redis.call('HGET', PayloadKeys.item(tx, item), 'bytes') or 0) end

-- Changes the used bytes; returns the new number. `+ 0`: the minus zero of an empty payload would be written as -0,
-- which is no integer for Redis.
function PayloadKeys.use(tx, bytes)
  return redis.call('HINCRBY', tx.key.meta, 'usedBytes', string.format('%.0f', bytes + 0))
end

function PayloadKeys.read_used(tx) return tonumber(redis.call('HGET', tx.key.meta, 'usedBytes') or 0) end
function PayloadKeys.set_used(tx, bytes) redis.call('HSET', tx.key.meta, 'usedBytes', Format.integer(bytes)) end

return PayloadKeys

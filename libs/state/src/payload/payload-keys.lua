-- Payloads of one job, under a separate root.
local PayloadKeys = {}

PayloadKeys.HEADER_FIELDS = 3

-- Hash: count, bytes, at and the chunks 0..count-1.
function PayloadKeys.item(tx, item) return tx.root .. 'item:' .. item end

function PayloadKeys.bytes(tx, item) return tonumber(redis.call('HGET', PayloadKeys.item(tx, item), 'bytes') or 0) end

-- `+ 0`: minus zero, of an empty payload, would be written as -0, which Redis takes for no integer.
function PayloadKeys.use(tx, bytes)
  return redis.call('HINCRBY', tx.key.meta, 'usedBytes', string.format('%.0f', bytes + 0))
end

return PayloadKeys

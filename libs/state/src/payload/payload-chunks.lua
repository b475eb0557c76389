-- Chunks of the payloads of one job.
local PayloadChunks = {}

-- Stores one chunk, see put-chunk.lua. `used`: bytes of the job, which the caller stores (PayloadKeys.set_used).
-- Returns the new number of bytes and the number of received chunks; or nil, the code and the message of an error.
function PayloadChunks.put(tx, used, name, index, count, chunk, quota)
  local item = PayloadKeys.item(tx, name)
  local is_known = redis.call('ZSCORE', tx.key.payloadIndex, name)
  local held = is_known and redis.call('HMGET', item, 'count', 'bytes', index) or {}
  local held_count, held_bytes = tonumber(held[1] or nil), tonumber(held[2] or 0)
  if held_count and redis.call('HLEN', item) - PayloadKeys.HEADER_FIELDS == held_count then
    if held_count ~= count or held[3] ~= chunk then
      return nil, 'PAYLOAD_EXISTS', 'Another payload has this name'
    end
    -- A freed payload is needed again and counts again.
    return used + (redis.call('SREM', tx.key.payloadFreed, name) == 1 and held_bytes or 0), count
  end

  local is_new = held_count ~= count
  local replaced = is_new and held_bytes or #(held[3] or '')
  used = used - replaced + #chunk
  if used > quota then
    return nil, 'PAYLOAD_STORE_FULL', string.format('The payloads of the job would take %.0f of %.0f bytes', used,
      quota)
  end

  if is_new then
    -- A swept payload is kept for a while without an index entry.
    redis.call('UNLINK', item)
    held_bytes, replaced = 0, 0
  end
  local now = Format.integer(tx.now)
  local bytes = Format.integer(held_bytes - replaced + #chunk)
  redis.call('HSET', item, 'count', count, index, chunk, 'at', now, 'bytes', bytes)
  redis.call('ZADD', tx.key.payloadIndex, now, name)
  return used, count == 1 and 1 or redis.call('HLEN', item) - PayloadKeys.HEADER_FIELDS
end

return PayloadChunks

--[[ Stores one chunk of a payload, within the quota of the job. Safe to repeat. A complete payload never changes; in an
incomplete payload a chunk replaces the chunk with its index, and another chunk count starts the payload anew.
ARGV[1] item: string; index, count: integers; quotaBytes: integer
ARGV[2] the bytes of the chunk
Reply: receivedChunks: integer; usedBytes: integer
Errors: PAYLOAD_STORE_FULL, PAYLOAD_EXISTS ]]
return function(tx, args, argv)
  local chunk = argv[2]
  local item = PayloadKeys.item(tx, args.item)

  -- A swept payload is kept for a while without an index entry.
  if not redis.call('ZSCORE', tx.key.payloadIndex, args.item) then redis.call('UNLINK', item) end
  local held = redis.call('HMGET', item, 'count', 'bytes', args.index)
  local count, held_bytes = tonumber(held[1] or nil), tonumber(held[2] or 0)
  if count and redis.call('HLEN', item) - PayloadKeys.HEADER_FIELDS == count then
    if count ~= args.count or held[3] ~= chunk then
      return Reply.fail('PAYLOAD_EXISTS', 'Another payload has this name')
    end
    -- A freed payload is needed again and counts again.
    local used = PayloadKeys.use(tx, redis.call('SREM', tx.key.payloadFreed, args.item) == 1 and held_bytes or 0)
    return cjson.encode({ receivedChunks = count, usedBytes = used })
  end

  local is_new = count ~= args.count
  local replaced = is_new and held_bytes or #(held[3] or '')
  local used = tonumber(redis.call('HGET', tx.key.meta, 'usedBytes') or 0) - replaced + #chunk
  if used > args.quotaBytes then
    return Reply.fail('PAYLOAD_STORE_FULL', string.format('The payloads of the job would take %.0f of %.0f bytes', used,
      args.quotaBytes))
  end

  local now = Format.integer(tx.now)
  if is_new then
    redis.call('UNLINK', item)
    redis.call('HSET', item, 'count', args.count)
    held_bytes, replaced = 0, 0
  end
  redis.call('HSET', item, args.index, chunk, 'at', now, 'bytes', Format.integer(held_bytes - replaced + #chunk))
  redis.call('HSET', tx.key.meta, 'usedBytes', Format.integer(used))
  redis.call('ZADD', tx.key.payloadIndex, now, args.item)
  return cjson.encode({ receivedChunks = redis.call('HLEN', item) - PayloadKeys.HEADER_FIELDS, usedBytes = used })
end

--[[ Removes payloads of one job; payloads that are not there are skipped. One page of at most 128.
ARGV[1] JSON:
  items        list of strings
  cutoffMs     integer or absent: a payload stored or touched after this time stays
  incomplete   true or absent: a complete payload stays
  keepMs       integer or absent: removed payloads can be read, and held again, for this long
Reply: removed: integer
Flags: allow-oom ]]
return function(tx, args)
  local cutoff = args.cutoffMs
  local removed = 0
  for _, name in ipairs(args.items) do
    local since, item = redis.call('ZSCORE', tx.key.payloadIndex, name), PayloadKeys.item(tx, name)
    local function is_complete()
      return redis.call('HLEN', item) - PayloadKeys.HEADER_FIELDS == tonumber(redis.call('HGET', item, 'count'))
    end
    local stays = not since or (cutoff and tonumber(since) > cutoff) or (args.incomplete and is_complete())
    if not stays then
      if redis.call('SREM', tx.key.payloadFreed, name) == 0 then PayloadKeys.use(tx, -PayloadKeys.bytes(tx, name)) end
      if args.keepMs then redis.call('PEXPIRE', item, args.keepMs) else redis.call('UNLINK', item) end
      redis.call('ZREM', tx.key.payloadIndex, name)
      removed = removed + 1
    end
  end
  if redis.call('EXISTS', tx.key.payloadIndex) == 0 then redis.call('UNLINK', tx.key.meta) end
  return cjson.encode({ removed = removed })
end

--[[ Takes a job without payloads off the registry, unless a payload of the job was put after `cutoffMs`.
ARGV[1] job: string; cutoffMs: integer
Reply: forgotten: boolean
Flags: allow-oom ]]
return function(tx, args)
  local last_put = tonumber(redis.call('ZSCORE', tx.key.payloadRegistry, args.job) or 0)
  if last_put > args.cutoffMs then return cjson.encode({ forgotten = false }) end
  redis.call('ZREM', tx.key.payloadRegistry, args.job)
  return cjson.encode({ forgotten = true })
end

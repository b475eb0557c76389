--[[ Sets the lease digest of a worker epoch that is off, if it has not changed since it was summed up.
ARGV[1] JSON: {workerId; workerEpoch; digest: text that was seen; sum: text}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local known = redis.call('HMGET', tx.key:worker(args.workerId), 'liveEpoch', 'leaseDigest')
  if known[1] ~= args.workerEpoch or (known[2] or '0') ~= args.digest then return '{"mended":false}' end
  redis.call('HSET', tx.key:worker(args.workerId), 'leaseDigest', args.sum)
  return '{"mended":true}'
end

--[[ Sets the quota of a job, which need not exist yet; without a weight the call only reads. The version of the quota
grows by one with each change. A quota that is in force already is not set again, so a repeat changes nothing.
ARGV[1] JSON: {job, weight, maxInFlight: JobQuota; ifVersion: version that the quota must have, or absent}
Reply: ConfigureJobAnswer
Errors: VERSION_MISMATCH. ]]
return function(tx, args)
  local hash = tx.key:jobQuota(args.job)
  local field = redis.call('HMGET', hash, 'weight', 'maxInFlight', 'version')
  local quota = { weight = tonumber(field[1] or ClaimTurns.DEFAULT_WEIGHT), maxInFlight = tonumber(field[2] or nil) }
  local version = tonumber(field[3] or 0)
  if args.weight and (args.weight ~= quota.weight or args.maxInFlight ~= quota.maxInFlight) then
    if args.ifVersion and args.ifVersion ~= version then
      return Reply.fail('VERSION_MISMATCH', 'The quota has the version ' .. Format.integer(version), 'ifVersion')
    end
    version = version + 1
    quota = { weight = args.weight, maxInFlight = args.maxInFlight }
    redis.call('HDEL', hash, 'maxInFlight')
    Hashes.set(hash, { weight = quota.weight, maxInFlight = quota.maxInFlight, version = version })
    ClaimTurns.readmit(tx, args.job)
  end
  return Reply.object({
    job = args.job, version = version, quota = quota,
    inFlight = ClaimTurns.held_by_workers(tx, args.job), madeRoom = tx.jobs_readmitted,
  })
end

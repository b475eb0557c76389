--[[ Sets the quota of a job, also of one that is not there yet; without a weight it only reads.
ARGV[1] JSON: {job, weight, maxInFlight}: JobQuota
Reply: ConfigureJobAnswer ]]
return function(tx, args)
  local hash = tx.key:jobQuota(args.job)
  if args.weight then
    redis.call('HDEL', hash, 'maxInFlight')
    Hashes.set(hash, { weight = args.weight, maxInFlight = args.maxInFlight })
    ClaimTurns.readmit(tx, args.job)
  end
  local field = redis.call('HMGET', hash, 'weight', 'maxInFlight')
  return Reply.object({
    job = args.job,
    quota = { weight = tonumber(field[1] or ClaimTurns.DEFAULT_WEIGHT), maxInFlight = tonumber(field[2] or nil) },
    inFlight = ClaimTurns.held_by_workers(tx, args.job), madeRoom = tx.jobs_readmitted,
  })
end

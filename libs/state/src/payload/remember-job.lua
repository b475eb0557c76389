--[[ Notes that a payload of a job is about to be put, so that the sweep finds the job. Called before every put.
ARGV[1] job: string
Reply: {}
Flags: allow-oom ]]
return function(tx, args)
  redis.call('ZADD', tx.key.payloadRegistry, redis.call('TIME')[1] * 1000, args.job)
  return '{}'
end

--[[ Sets the quota of a job, also of one that is not there yet; without `set` it only reads.
ARGV[1] JSON:
  job           string
  set           boolean
  weight        number
  maxInFlight   number or absent: no cap
Reply: job, quota {weight, maxInFlight or absent}, inFlight (requests that workers have)
       madeRoom   boolean: parked claims may be granted
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "../includes/turns"
local args = cjson.decode(ARGV[1])
local hash = key.jobQuota(args.job)
if args.set then
  redis.call('HSET', hash, 'weight', args.weight)
  if optional(args.maxInFlight) then
    redis.call('HSET', hash, 'maxInFlight', args.maxInFlight)
  else
    redis.call('HDEL', hash, 'maxInFlight')
  end
  readmit_job(args.job)
end
local field = redis.call('HMGET', hash, 'weight', 'maxInFlight')
return cjson.encode({
  job = args.job, quota = { weight = tonumber(field[1] or DEFAULT_WEIGHT), maxInFlight = tonumber(field[2] or nil) },
  inFlight = held_by_workers(args.job), madeRoom = jobs_readmitted,
})

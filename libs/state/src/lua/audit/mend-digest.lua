--[[ Sets the lease digest of a worker epoch that is off, if it has not changed since it was summed up.
ARGV[1] JSON: {workerId; workerEpoch; digest: text that was seen; sum: text}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/keys"
local args = cjson.decode(ARGV[1])
local known = redis.call('HMGET', key.worker(args.workerId), 'liveEpoch', 'leaseDigest')
if known[1] ~= args.workerEpoch or (known[2] or '0') ~= args.digest then return '{"mended":false}' end
redis.call('HSET', key.worker(args.workerId), 'leaseDigest', args.sum)
return '{"mended":true}'

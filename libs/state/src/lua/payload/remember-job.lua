--[[ Notes that something is about to be put for a job, so that the sweep finds it. Said before every put.

ARGV[1] job: string
reply   {}
Flags: allow-oom ]]
--- @include "includes/payload-keys"
local args = cjson.decode(ARGV[1])
redis.call('ZADD', payloads.registry, redis.call('TIME')[1] * 1000, args.job)
return '{}'

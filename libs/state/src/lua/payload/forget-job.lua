--[[ Takes a job without payloads off the registry, unless something was put for it since.

ARGV[1] job: string; cutoffMs: integer
reply   forgotten: boolean
Flags: allow-oom ]]
--- @include "includes/payload-keys"
local args = cjson.decode(ARGV[1])
local last_put = tonumber(redis.call('ZSCORE', payloads.registry, args.job) or 0)
if last_put > args.cutoffMs then return cjson.encode({ forgotten = false }) end
redis.call('ZREM', payloads.registry, args.job)
return cjson.encode({ forgotten = true })

--[[ Removes payloads of one job; those that are not there are skipped. One page of at most 128.
With cutoffMs, only those not stored or touched since: one written again meanwhile stays.

ARGV[1] items: list of strings; cutoffMs: integer or absent
reply   removed: integer; usedBytes: integer
Flags: allow-oom ]]
--- @include "includes/payload-keys"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local cutoff = optional(args.cutoffMs)
local removed, freed = 0, 0
for _, name in ipairs(args.items) do
  local since = redis.call('ZSCORE', payloads.index, name)
  if since and (not cutoff or tonumber(since) <= cutoff) then
    freed = freed + tonumber(redis.call('HGET', payloads.item(name), 'bytes') or 0)
    redis.call('UNLINK', payloads.item(name))
    redis.call('ZREM', payloads.index, name)
    removed = removed + 1
  end
end
local used = redis.call('HINCRBY', key.meta, 'usedBytes', string.format('%.0f', 0 - freed))
if redis.call('EXISTS', payloads.index) == 0 then redis.call('UNLINK', key.meta) end
return cjson.encode({ removed = removed, usedBytes = used })

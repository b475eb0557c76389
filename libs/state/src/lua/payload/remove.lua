--[[ Removes payloads of one job; those that are not there are skipped. One page of at most 128.

ARGV[1] items: list of strings
        cutoffMs: integer or absent; one stored or touched since stays
        incomplete: true or absent; one that is complete stays
        keepMs: integer or absent; they can be read, and held again, for this long
reply   removed: integer
Flags: allow-oom ]]
--- @include "includes/payload-keys"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local cutoff = optional(args.cutoffMs)
local removed = 0
for _, name in ipairs(args.items) do
  local since, item = redis.call('ZSCORE', payloads.index, name), payloads.item(name)
  local stays = not since or (cutoff and tonumber(since) > cutoff)
    or (optional(args.incomplete) and redis.call('HLEN', item) - HEADER_FIELDS == tonumber(redis.call('HGET', item, 'count')))
  if not stays then
    if redis.call('SREM', payloads.freed, name) == 0 then payloads.use(-payloads.bytes(name)) end
    if optional(args.keepMs) then redis.call('PEXPIRE', item, args.keepMs) else redis.call('UNLINK', item) end
    redis.call('ZREM', payloads.index, name)
    removed = removed + 1
  end
end
if redis.call('EXISTS', payloads.index) == 0 then redis.call('UNLINK', key.meta) end
return cjson.encode({ removed = removed })

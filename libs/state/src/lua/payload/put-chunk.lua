--[[ Stores one chunk of a payload, within the quota of the job. Safe to repeat.
A chunk of a payload with another chunk count begins it anew; `replace` always does. Otherwise the chunk takes the
place of the one with its index. A staged payload counts to the quota without the one it `replaces`.

ARGV[1] item: string; index, count: integers; quotaBytes: integer; replace: boolean or absent; replaces: string or absent
ARGV[2] the bytes of the chunk
reply   receivedChunks: integer; usedBytes: integer
errors  PAYLOAD_STORE_FULL
]]
--- @include "includes/payload-keys"
--- @include "../includes/clock"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local chunk = ARGV[2]
local item = payloads.item(args.item)

local held = redis.call('HMGET', item, 'count', 'bytes')
local known = held[1] ~= false
local held_bytes = tonumber(held[2] or 0)
local anew = not known or optional(args.replace) or tonumber(held[1]) ~= args.count
local freed = anew and held_bytes or redis.call('HSTRLEN', item, args.index)
local used = tonumber(redis.call('HGET', key.meta, 'usedBytes') or 0) - freed + #chunk
local replaced = optional(args.replaces) and redis.call('HGET', payloads.item(args.replaces), 'bytes')
if used - tonumber(replaced or 0) > args.quotaBytes then
  return fail('PAYLOAD_STORE_FULL', string.format('The payloads of the job would take %.0f of %.0f bytes', used, args.quotaBytes))
end

local now = string.format('%.0f', now_ms())
if anew then
  redis.call('UNLINK', item)
  held_bytes, freed = 0, 0
  redis.call('HSET', item, 'count', args.count, 'version', redis.call('HINCRBY', key.meta, 'versions', 1))
end
redis.call('HSET', item, args.index, chunk, 'at', now, 'bytes', string.format('%.0f', held_bytes - freed + #chunk))
redis.call('HSET', key.meta, 'usedBytes', string.format('%.0f', used))
redis.call('ZADD', payloads.index, now, args.item)
return cjson.encode({ receivedChunks = redis.call('HLEN', item) - 4, usedBytes = used })

--[[ Stores one chunk of a payload, within the quota of the job. Safe to repeat. A complete payload never changes; of one
that is not, a chunk takes the place of the one with its index, and another chunk count begins it anew.

ARGV[1] item: string; index, count: integers; quotaBytes: integer
ARGV[2] the bytes of the chunk
reply   receivedChunks: integer; usedBytes: integer
errors  PAYLOAD_STORE_FULL, PAYLOAD_EXISTS
]]
--- @include "includes/payload-keys"
--- @include "../includes/clock"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local chunk = ARGV[2]
local item = payloads.item(args.item)

-- One that was swept is kept for a while, but nobody names it.
if not redis.call('ZSCORE', payloads.index, args.item) then redis.call('UNLINK', item) end
local held = redis.call('HMGET', item, 'count', 'bytes', args.index)
local count, held_bytes = tonumber(held[1] or nil), tonumber(held[2] or 0)
if count and redis.call('HLEN', item) - HEADER_FIELDS == count then
  if count ~= args.count or held[3] ~= chunk then
    return fail('PAYLOAD_EXISTS', 'Another payload is stored under this name')
  end
  -- It was freed, and is wanted again.
  local used = payloads.use(redis.call('SREM', payloads.freed, args.item) == 1 and held_bytes or 0)
  return cjson.encode({ receivedChunks = count, usedBytes = used })
end

local anew = count ~= args.count
local replaced = anew and held_bytes or #(held[3] or '')
local used = tonumber(redis.call('HGET', key.meta, 'usedBytes') or 0) - replaced + #chunk
if used > args.quotaBytes then
  return fail('PAYLOAD_STORE_FULL', string.format('The payloads of the job would take %.0f of %.0f bytes', used, args.quotaBytes))
end

local now = string.format('%.0f', now_ms())
if anew then
  redis.call('UNLINK', item)
  redis.call('HSET', item, 'count', args.count)
  held_bytes, replaced = 0, 0
end
redis.call('HSET', item, args.index, chunk, 'at', now, 'bytes', string.format('%.0f', held_bytes - replaced + #chunk))
redis.call('HSET', key.meta, 'usedBytes', string.format('%.0f', used))
redis.call('ZADD', payloads.index, now, args.item)
return cjson.encode({ receivedChunks = redis.call('HLEN', item) - HEADER_FIELDS, usedBytes = used })

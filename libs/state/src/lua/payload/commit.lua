--[[ Puts a completely staged payload in the place of the one it replaces, at once for every reader.
A repeat finds nothing staged and changes nothing.

ARGV[1] staged, item: strings
reply   committed: boolean
Flags: allow-oom ]]
--- @include "includes/payload-keys"
--- @include "../includes/clock"
local args = cjson.decode(ARGV[1])
local staged, item = payloads.item(args.staged), payloads.item(args.item)
if redis.call('EXISTS', staged) == 0 then return cjson.encode({ committed = false }) end

local freed = tonumber(redis.call('HGET', item, 'bytes') or 0)
redis.call('UNLINK', item)
redis.call('RENAME', staged, item)
redis.call('HINCRBY', key.meta, 'usedBytes', string.format('%.0f', 0 - freed))
redis.call('ZREM', payloads.index, args.staged)
redis.call('ZADD', payloads.index, string.format('%.0f', now_ms()), args.item)
return cjson.encode({ committed = true })

--[[ Marks payloads as found to be owned now, so that the sweep comes back to them only later. One page of at most 128.

ARGV[1] items: list of strings
reply   touched: integer
Flags: allow-oom ]]
--- @include "includes/payload-keys"
--- @include "../includes/clock"
local args = cjson.decode(ARGV[1])
local now = string.format('%.0f', now_ms())
local touched = 0
for _, name in ipairs(args.items) do
  touched = touched + redis.call('ZADD', payloads.index, 'XX', 'CH', now, name)
end
return cjson.encode({ touched = touched })

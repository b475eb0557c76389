--[[ Payloads of one job that nothing names any more wait for their removal: they stay readable and count to the quota no
longer. With `hold` they are wanted again, and count; those that were swept, too. One page of at most 128; safe to repeat.

ARGV[1] items: list of strings; hold: boolean
reply   bytes: list of integers, -1 for one that is not there
Flags: allow-oom ]]
--- @include "includes/payload-keys"
--- @include "../includes/clock"
--- @include "../includes/reply"
local args = cjson.decode(ARGV[1])
local bytes = {}
for position, name in ipairs(args.items) do
  local there = redis.call('ZSCORE', payloads.index, name)
  if args.hold and not there and redis.call('PERSIST', payloads.item(name)) == 1 then
    there = redis.call('ZADD', payloads.index, string.format('%.0f', now_ms()), name)
    payloads.use(payloads.bytes(name))
  end
  bytes[position] = there and payloads.bytes(name) or -1
  if there and redis.call(args.hold and 'SREM' or 'SADD', payloads.freed, name) == 1 then
    payloads.use(args.hold and bytes[position] or -bytes[position])
  end
end
return '{"bytes":' .. encode_list(bytes) .. '}'

--[[ Sets a counter that is off, if nothing has changed since it was seen, and puts its server where it belongs then.
ARGV[1] JSON: {hash, groupId?: as in audit/counters; name: serverId:epoch; counted: the number seen, 0 for none; found}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../routing/includes/leases"
local args = cjson.decode(ARGV[1])
local hash = args.hash == 'group' and key.groupLeases(args.groupId) or key[args.hash]
if (tonumber(redis.call('HGET', hash, args.name) or nil) or 0) ~= args.counted then return '{"mended":false}' end
if args.found == 0 then
  redis.call('HDEL', hash, args.name)
else
  redis.call('HSET', hash, args.name, string.format('%.0f', args.found))
end
local id, epoch = string.match(args.name, '^(.*):(%w+)$')
local server = server_of(id)
if server and server.epoch == epoch then rescore(server) end
return '{"mended":true}'

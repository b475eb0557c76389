--[[ Keeps new leases from a server while those it has run on, or ends that; the end also takes a drain back.
ARGV[1] JSON:
  serverId
  cordoned         boolean
  mostSessions     number: as in acquire
Reply: as in routing/update-server
Errors: SERVER_NOT_FOUND. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/changed-server"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
server.cordoned = args.cordoned
if args.cordoned then
  set_server(server.id, 'cordoned', '1')
else
  server.drainUntilMs = nil
  unset_server(server.id, 'cordoned', 'drainUntilMs')
  redis.call('ZREM', key.drainingServers, server.id)
end
return changed_server(server, now_ms(), args.mostSessions)

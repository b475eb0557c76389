--[[ Gives a server no new leases; it is removed with its last lease, or at the deadline with all of them. A repeat can
only bring the deadline forward.
ARGV[1] JSON:
  serverId
  deadlineMs       number: from now on
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
local now = now_ms()
server.drainUntilMs = math.min(server.drainUntilMs or math.huge, now + args.deadlineMs)
local until_ms = string.format('%.0f', server.drainUntilMs)
set_server(server.id, 'drainUntilMs', until_ms)
redis.call('ZADD', key.drainingServers, until_ms, server.id)
return changed_server(server, now, args.mostSessions)

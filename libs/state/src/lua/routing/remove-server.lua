--[[ Forgets a server. Its leases and sessions are void at once and later releases change nothing.
ARGV[1] JSON: {serverId}
Reply: removed     false when there was no such server
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/servers"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return '{"removed":false}' end
forget_server(server)
return '{"removed":true}'

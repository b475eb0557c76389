--[[ Forgets a server. Its leases and sessions are void at once and later releases change nothing.
ARGV[1] JSON: {serverId}
Reply: removed     false when there was no such server
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "includes/servers"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return '{"removed":false}' end
void_server_epoch(server.id, server.epoch)
redis.call('DEL', key.server(server.id))
redis.call('ZREM', key.servers, server.id)
redis.call('ZREM', key.watchedServers, server.id)
redis.call('ZREM', key.eligible, server.id)
redis.call('SREM', key.usableServers, server.id)
redis.call('SADD', key.rehomedLanes, server.id)
return '{"removed":true}'

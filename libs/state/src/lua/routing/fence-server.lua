--[[ Takes the current epoch from a server, as if it had failed: its leases and sessions are void, and late releases
change nothing. It stays failed until it registers with another instanceId; probes and heartbeats do not bring it back.
ARGV[1] JSON:
  serverId
  epoch            string: which epoch is meant
  newEpoch         string: the epoch after it
  reason           string
Reply: serverId, epoch, state   as they are now
       changed     false when that epoch is not the current one
Errors: SERVER_NOT_FOUND. Facts: server.fenced.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/facts"
--- @include "includes/servers"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
local changed = args.epoch == server.epoch and not is_fenced(server)
if changed then
  set_server(server.id, 'fenced', '1')
  fail_server(server, args.newEpoch)
  fact('server.fenced', { serverId = server.id, epoch = args.epoch, reason = args.reason })
end
return '{"serverId":' .. cjson.encode(server.id) .. ',"changed":' .. tostring(changed) .. ',"epoch":"'
  .. server.epoch .. '","state":"' .. shown_state(server) .. '"}'

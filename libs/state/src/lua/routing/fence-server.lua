--[[ Takes the current epoch from a server, as if it had failed: its leases and sessions are void, and late releases
change nothing. It stays failed until it registers with another instanceId; probes and heartbeats do not bring it back.
ARGV[1] JSON:
  serverId
  epoch            number: which epoch is meant
  reason           string
Reply: serverId, epoch, state   as they are now
       changed     false when that epoch was void already
Errors: SERVER_NOT_FOUND, VALIDATION_FAILED (no such epoch yet). Facts: server.fenced.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/facts"
--- @include "includes/servers"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
if args.epoch > server.epoch then return fail('VALIDATION_FAILED', 'The server has no such epoch yet', 'epoch') end
local changed = args.epoch == server.epoch and not is_fenced(server)
if changed then
  set_server(server.id, 'fenced', '1')
  fail_server(server)
  fact('server.fenced', { serverId = server.id, epoch = args.epoch, reason = args.reason })
end
return '{"serverId":' .. cjson.encode(server.id) .. ',"changed":' .. tostring(changed) .. ',"epoch":'
  .. string.format('%.0f', server.epoch) .. ',"state":"' .. shown_state(server) .. '"}'

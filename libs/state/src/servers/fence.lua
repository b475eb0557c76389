--[[ Takes the current epoch from a server, as if it had failed: its leases and sessions are expired, and late releases
change nothing. The server stays failed until it registers with another instanceId, whatever probes and heartbeats show.
ARGV[1] JSON: {serverId; epoch: the epoch to expire; newEpoch: the epoch after it; reason}
Reply: FenceServerReply
Errors: SERVER_NOT_FOUND. Events: server.fenced.
Flags: allow-oom ]]
return function(tx, args)
  local server, refused = Servers.named(tx, { serverId = args.serverId })
  if not server then return refused end
  local changed = args.epoch == server.epoch and not Servers.is_fenced(tx, server)
  if changed then
    ServerHash.set(tx, server.id, 'fenced', '1')
    Servers.fail(tx, server, args.newEpoch)
    Events.add(tx, 'server.fenced', { serverId = server.id, epoch = args.epoch, reason = args.reason or '' })
  end
  return '{"serverId":' .. cjson.encode(server.id) .. ',"changed":' .. tostring(changed) .. ',"epoch":"'
    .. server.epoch .. '","state":"' .. Servers.shown_state(tx, server) .. '"}'
end

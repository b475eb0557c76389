--[[ Forgets a server. The leases and sessions of the server are expired at once and later releases change nothing.
ARGV[1] JSON: {serverId}
Reply: RemoveServerReply
Flags: allow-oom ]]
return function(tx, args)
  local server = Servers.get(tx, args.serverId)
  if not server then return '{"removed":false}' end
  Servers.forget(tx, server)
  return '{"removed":true}'
end

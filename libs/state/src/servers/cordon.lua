--[[ Keeps new leases from a server while those it has run on, or ends that; the end also takes a drain back.
ARGV[1] JSON: {serverId; cordoned: boolean}
Reply: ServerChange
Errors: SERVER_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local server = Servers.get(tx, args.serverId)
  if not server then return Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
  server.cordoned = args.cordoned
  if args.cordoned then
    ServerHash.change(tx, server.id, { cordoned = true })
  else
    server.drainUntilMs = nil
    ServerHash.change(tx, server.id, { cordoned = false, drainUntilMs = false })
    redis.call('ZREM', tx.key.drainingServers, server.id)
  end
  return ChangedServer.reply(tx, server)
end

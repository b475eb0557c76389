--[[ Gives a server no new leases; it is removed with its last lease, or at the deadline with all of them. A repeat can
only bring the deadline forward.
ARGV[1] JSON:
  serverId
  deadlineMs       number: from now on
Reply: ServerChange
Errors: SERVER_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local server = Servers.get(tx, args.serverId)
  if not server then return Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
  local now = tx.now
  server.drainUntilMs = math.min(server.drainUntilMs or math.huge, now + args.deadlineMs)
  ServerHash.change(tx, server.id, { drainUntilMs = server.drainUntilMs })
  redis.call('ZADD', tx.key.drainingServers, Format.integer(server.drainUntilMs), server.id)
  return ChangedServer.reply(tx, server)
end

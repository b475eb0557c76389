--[[ Changes what a server was registered with; its leases, sessions and epoch stay. New room goes to waiters.
ARGV[1] JSON:
  serverId
  maxInflight?, weight?, weightVersion?   numbers; what is absent stays as it is
  labels?, capabilities?   JSON text
  lacks?           string: features its engine does not have, commas between
  epoch?           string: only while this is its epoch
  said?            {startedAtSeconds?, weightVersion?, knownWeightVersion?}: what its engine says of itself, and its
                   word before (servers/engine-report)
  newEpoch         string: the epoch that begins if that is a restart
Reply: ServerChange
Errors: SERVER_NOT_FOUND, FENCED.
Flags: allow-oom ]]
return function(tx, args)
  local server = Servers.get(tx, args.serverId)
  if not server then return Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
  if args.epoch and args.epoch ~= server.epoch then
    return Reply.fail('FENCED', 'The server has another epoch', 'epoch')
  end
  local now = tx.now
  if args.said then EngineReport.heed(tx, server, args.said, args.newEpoch, now) end
  if args.weightVersion then Servers.set_version(tx, server, args.weightVersion) end
  for _, field in ipairs({ 'maxInflight', 'weight' }) do
    local value = args[field]
    if value then
      server[field] = value
      ServerHash.change(tx, server.id, { [field] = value })
    end
  end
  -- A capacity set by hand is not to be lowered by what was learned under another one.
  if args.maxInflight then
    server.limit = nil
    ServerHash.change(tx, server.id, { limit = false })
  end
  for _, field in ipairs({ 'labels', 'capabilities' }) do
    if args[field] then ServerHash.set(tx, server.id, field, args[field]) end
  end
  if args.capabilities and redis.call('HEXISTS', tx.key:server(server.id), 'maybePaused') == 1 then
    PausedEngines.resume_unrecorded(tx, server)
  end
  if args.lacks then
    Servers.set_lacks(tx, server.id, args.lacks)
    server.lacks = nil
  end
  return ChangedServer.reply(tx, server)
end

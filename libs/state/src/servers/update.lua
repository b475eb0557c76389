--[[ Changes the registration of a server, or requests for it such as a drain; its leases, sessions and epoch stay. New
room goes to waiters.
ARGV[1] JSON: {serverId, maxInflight, weight, weightVersion, labels, capabilities, lacks, model, models, isDescribed,
  weightsUnknown, epoch, report, newEpoch, cordoned, deadlineMs, listedAs, withheld, pendingVersion, emptiedSinceMs}:
  ServerUpdate, labels and capabilities as JSON texts, models one a line
  weightsUnknown   the server gets no leases until its weights are reported
  pendingVersion   weight version of an engine that has not emptied its prefix cache: the server gets no leases until a
                   weightVersion or emptiedSinceMs
  emptiedSinceMs   the engine has emptied its cache; start of the last change of weights at that time, 0 for none
  report           a restart starts the epoch newEpoch
  isDescribed      the engine has just described itself in its dialect; a pending or failed server is ready unless it is
                   fenced
  cordoned         the server gets no new leases; false also ends a drain
  deadlineMs       from now on: the server gets no new leases and is removed with its last lease, or at the deadline
                   with all its leases; a repeat can only make the deadline earlier
  listedAs         the change comes from the list of engines, and only for the engine that is listed as this
  withheld         the server gets no new leases
Reply: ServerChange
Errors: SERVER_NOT_FOUND, FENCED.
Flags: allow-oom ]]
return function(tx, args)
  local server, refused = Servers.named(tx, args)
  if not server then return refused end
  if args.listedAs and args.listedAs ~= redis.call('HGET', tx.key:server(server.id), 'listedAs') then
    return Reply.fail('FENCED', 'The server is listed as another engine', 'listedAs')
  end
  local now = tx.now
  if args.report then EngineReport.apply(tx, server, args.report, args.newEpoch) end
  if args.weightsUnknown then ServerWeights.set_unknown(tx, server) end
  if args.weightVersion then ServerWeights.set_version(tx, server, args.weightVersion) end
  if args.pendingVersion then ServerWeights.await_reset(tx, server, args.pendingVersion) end
  if args.emptiedSinceMs then ServerWeights.confirm_reset(tx, server, args.emptiedSinceMs) end
  for _, field in ipairs({ 'maxInflight', 'weight', 'cordoned', 'withheld' }) do
    local value = args[field]
    if value ~= nil then
      server[field] = value
      ServerHash.change(tx, server.id, { [field] = value })
    end
  end
  -- A capacity that a caller sets replaces the limit of adaptive concurrency.
  if args.maxInflight then
    server.limit = nil
    ServerHash.change(tx, server.id, { limit = false })
  end
  if args.cordoned == false then
    server.drainUntilMs = nil
    ServerHash.change(tx, server.id, { drainUntilMs = false })
    redis.call('ZREM', tx.key.drainingServers, server.id)
  elseif args.deadlineMs then
    if not args.listedAs then
      ServerHash.unset(tx, server.id, 'drainedBy')
    elseif not server.drainUntilMs then
      ServerHash.set(tx, server.id, 'drainedBy', 'list')
    end
    server.drainUntilMs = math.min(server.drainUntilMs or math.huge, now + args.deadlineMs)
    ServerHash.change(tx, server.id, { drainUntilMs = server.drainUntilMs })
    redis.call('ZADD', tx.key.drainingServers, Format.integer(server.drainUntilMs), server.id)
  end
  -- Capabilities from the registration of a start take precedence over its description.
  if args.isDescribed and server.state == 'pending'
    and redis.call('HEXISTS', tx.key:server(server.id), 'capabilities') == 1 then
    args.capabilities, args.lacks = nil, nil
  end
  for _, field in ipairs({ 'labels', 'capabilities' }) do
    if args[field] then ServerHash.set(tx, server.id, field, args[field]) end
  end
  if args.capabilities then ServerWeights.set_cache(tx, server.id, args.capabilities) end
  if args.capabilities and redis.call('HEXISTS', tx.key:server(server.id), 'maybePaused') == 1 then
    PausedEngines.resume_unrecorded(tx, server)
  end
  if args.lacks then
    Servers.set_lacks(tx, server.id, args.lacks)
    server.lacks = nil
  end
  if args.models then Models.set(tx, server.id, args.models) end
  if args.isDescribed then EngineReport.describe(tx, server, args.model) end
  Servers.publish(tx, server)
  return Waiters.reply(tx, { server.id }, function()
    return { serverId = server.id, epoch = server.epoch, state = Servers.shown_state(tx, server),
      inflight = server.load, capacity = Servers.capacity(tx, server), drainUntilMs = server.drainUntilMs }
  end)
end

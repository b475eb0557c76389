--[[ One page of the servers, in no order; a scan (Pages.list).
ARGV[1] JSON: {serverId: only this server, or absent; cursor, limit: ListServersRequest}
Reply: ListServersReply
Errors: SERVER_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local STEP, PAGE = 64, 128 -- 64 servers with long texts are half a message; a scan returns a small set whole
  local now = tx.now
  local page, cursor
  if args.serverId then
    local heard_at = redis.call('ZSCORE', tx.key.servers, args.serverId)
    if not heard_at or not Servers.get(tx, args.serverId) then
      return Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId')
    end
    page = { args.serverId, heard_at }
  else
    page, cursor = Pages.list('ZSCAN', tx.key.servers, args.cursor, STEP, args.limit or PAGE)
  end
  local servers = {}

  for index = 1, #page, 2 do
    local server = Servers.get(tx, page[index])
    if server then
      local probe
      if not server.probed then probe = false end
      local labels, address = Servers.labels_of(tx, server), ServerRecord.address_of(server)
      local report = redis.call('HMGET', tx.key:server(server.id), 'engineStartedAt', 'engineVersion', 'versionBefore',
        'capabilities', 'models', 'listedAs', 'observedInterval')
      table.insert(servers, Reply.object({
        serverId = server.id,
        epoch = server.epoch,
        state = Servers.shown_state(tx, server),
        endpoint = address.endpoint,
        dialect = address.dialect,
        model = address.model,
        inflight = server.load,
        maxInflight = server.maxInflight,
        weight = server.weight,
        weightVersion = server.weightVersion,
        heartbeatAgeMs = math.max(0, now - tonumber(page[index + 1])),
        capacity = Servers.capacity(tx, server),
        drainUntilMs = server.drainUntilMs,
        busyUntilMs = ServerHash.is_paused(tx, server) and server.trouble.untilMs or nil,
        hung = server.trouble and server.trouble.isSilent or nil,
        labels = next(labels) and labels or nil,
        probe = probe,
        load = Servers.load_report(tx, server),
        engineStartedAtSeconds = tonumber(report[1] or nil),
        engineWeightVersion = tonumber(report[2] or nil),
        unconfirmedWeightVersion = tonumber(report[3] or nil),
        listedAs = report[6] or nil,
        observedStreamInterval = tonumber(report[7] or nil),
        withheld = server.withheld or nil,
        pendingWeightVersion = ServerWeights.pending_version(tx, server),
        weightsUnknown = ServerWeights.state(tx, server) or nil,
      }, { capabilities = report[4] or nil, models = report[5] and Reply.list(Models.names(report[5])) or nil }))
    end
  end
  return Reply.object({ cursor = cursor }, { servers = Reply.joined(servers) })
end

--[[ Records servers that sent a heartbeat or whose endpoint answered a probe. A suspect server becomes ready, unless
the breaker holds it. A pending or failed server becomes ready by its own heartbeat, or when it is not probed; an answer
of its endpoint may be the answer of any program, so the server is `unproven` until the engine describes itself
(servers/update).
ARGV[1] JSON: {serverIds: at most 128; epoch, weightVersion: of a server's own heartbeat, then one serverId}
Reply: HeartbeatResult
Errors: SERVER_NOT_FOUND, FENCED (the epoch is not current), both only when `epoch` is given.
Flags: allow-oom ]]
return function(tx, args)
  local now = tx.now
  local epoch = args.epoch
  local weight_version = args.weightVersion
  if epoch then
    -- A failed server has a new epoch, which it learns only when it registers again.
    local server, refused = Servers.named(tx, { serverId = args.serverIds[1], epoch = epoch })
    if not server then return refused end
    if server.state == 'failed' and Servers.is_fenced(tx, server) then
      return Reply.fail('FENCED', 'The server was fenced and must restart', 'epoch')
    end
  end

  local states, unproven, changed = {}, {}, {}
  local known_index_entries = args.serverIds[1]
    and redis.call('HMGET', tx.key.serverIndexEntries, unpack(args.serverIds))
  for index, id in ipairs(args.serverIds) do
    local server = Servers.get(tx, id)
    -- Index entries are missing or wrong when a version without them has registered or changed the server.
    local index_entries = server and known_index_entries[index]
    if server and (not index_entries or tonumber(string.match(index_entries,
      '^@(%d+)|')) ~= server.weightVersion) then ServerHash.save_index_entries(tx, id) end
    if server and server.state == 'failed' and Servers.is_fenced(tx, server) then
      redis.call('ZADD', tx.key.servers, Format.integer(now), id)
      states[id] = 'failed'
    elseif server and server.probed and not epoch and (server.state == 'pending' or server.state == 'failed') then
      redis.call('ZADD', tx.key.servers, Format.integer(now), id)
      table.insert(unproven, id)
      states[id] = Servers.shown_state(tx, server)
    elseif server then
      redis.call('ZADD', tx.key.servers, Format.integer(now), id)
      redis.call('ZADD', tx.key.watchedServers, Format.integer(now), id)
      local is_unknown, is_stale = ServerWeights.state(tx, server)
      if weight_version and (weight_version ~= server.weightVersion or is_unknown or is_stale) then
        ServerWeights.set_version(tx, server, weight_version)
        Servers.publish(tx, server)
        table.insert(changed, id)
      end
      local stays_suspect = server.state == 'suspect' and ServerHash.is_paused(tx, server)
      if server.state == 'pending' or (server.state == 'suspect' and not stays_suspect) or server.state == 'failed' then
        if server.state ~= 'suspect' then Servers.begin_slow_start(tx, server) end
        server.state = 'ready'
        server.held = false
        Servers.publish(tx, server)
        table.insert(changed, id)
      end
      -- Changed settings may have changed whether the server takes leases.
      if Servers.is_usable(tx, server) ~= (redis.call('SISMEMBER', tx.key.usableServers, id) == 1) then
        Servers.publish(tx, server)
        table.insert(changed, id)
      else
        Servers.rescore_later(tx, server)
      end
      states[id] = Servers.shown_state(tx, server)
    end
  end
  return Waiters.reply(tx, changed,
    { unproven = unproven, requiredWeightVersion = Settings.number(tx, 'requiredWeightVersion') },
    { states = cjson.encode(states) })
end

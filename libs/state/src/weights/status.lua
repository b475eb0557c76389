--[[ The weights of a pool.
ARGV[1] JSON: {syncId, cursor, limit, stamp}: WeightsStatusRequest
  syncId   absent: the change under way
  cursor   '0' to begin; absent: no servers
  stamp    of the trainer, or absent
Reply: WeightsStatusReply; servers: one page in no order
Errors: GENERATION_CHANGED, WEIGHT_SYNC_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local sync, status = Weights.sync(tx), nil
  local is_under_way = sync and (not args.syncId or sync.syncId == args.syncId)
  if is_under_way then
    status = Weights.sync_json(tx, sync, 'begun')
  elseif args.syncId then
    status = redis.call('GET', tx.key:endedSync(args.syncId))
    if not status then
      return Reply.fail('WEIGHT_SYNC_NOT_FOUND', 'There is no change of weights ' .. args.syncId, 'syncId')
    end
  end
  local wanted = is_under_way and sync.version or Settings.number(tx, 'requiredWeightVersion')

  local servers, page, cursor = {}, {}, nil
  if args.cursor then
    page, cursor = Pages.list('ZSCAN', tx.key.servers, args.cursor, PAGE, args.limit or PAGE)
  end
  for position = 1, #page, 2 do
    local server = Servers.get(tx, page[position])
    if server then
      local entry = PausedEngines.load(tx, PausedEngines.name_of(server))
      local is_unknown, is_stale = ServerWeights.state(tx, server)
      table.insert(servers, { serverId = server.id, epoch = server.epoch, state = Servers.shown_state(tx, server),
        weightVersion = server.weightVersion, inflight = server.load, quiesced = server.load == 0,
        confirmed = not is_unknown and not is_stale and (wanted == nil or server.weightVersion == wanted),
        weightsUnknown = is_unknown or nil,
        -- Without a syncId, the engine is only resumed in case Redis lost an entry.
        paused = entry ~= nil and entry.state == 'paused' and entry.syncId ~= '' })
    end
  end
  return Generation.reply(tx, { servers = servers, cursor = cursor },
    { version = redis.call('HGET', tx.key.weights, 'version') or nil, sync = status })
end

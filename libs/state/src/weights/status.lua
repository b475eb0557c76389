--[[ The weights of a pool.
ARGV[1] JSON: {syncId, cursor, stamp}   strings; syncId absent: the change under way; cursor '0' to begin, absent: no
servers;
  stamp of the trainer, or absent
Reply: version    number: committed last, absent before the first
       sync       WeightSync of the protocol; absent when there is none
       servers    list of WeightServer of the protocol, one page in no order
       cursor     string, '0' at the end
       stamp      string
Errors: GENERATION_CHANGED, WEIGHT_SYNC_NOT_FOUND. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local asked, cursor = args.syncId, args.cursor
  local sync = WeightSync.load(tx)
  local status, wanted
  if sync and (not asked or sync.syncId == asked) then
    status, wanted = WeightSync.json(tx, sync, 'begun'), sync.version
  elseif asked then
    status = redis.call('GET', tx.key:endedSync(asked))
    if not status then
      return Reply.fail('WEIGHT_SYNC_NOT_FOUND', 'There is no change of weights ' .. asked, 'syncId')
    end
  end
  wanted = wanted or Settings.number(tx, 'requiredWeightVersion')

  local servers, next_cursor = {}, '0'
  local function is_paused(server)
    local entry = PausedEngines.load(tx, PausedEngines.name_of(server))
    return entry ~= nil and entry.state == 'paused'
  end
  if cursor then
    local page = redis.call('ZSCAN', tx.key.servers, cursor, 'COUNT', PAGE)
    next_cursor = page[1]
    for position = 1, #page[2], 2 do
      local server = Servers.get(tx, page[2][position])
      if server then
        table.insert(servers, { serverId = server.id, epoch = server.epoch, state = Servers.shown_state(tx, server),
          weightVersion = server.weightVersion, inflight = server.load, quiesced = server.load == 0,
          confirmed = wanted == nil or server.weightVersion == wanted,
          paused = is_paused(server) })
      end
    end
  end
  local version = redis.call('HGET', tx.key.weights, 'version')
  return Generation.stamped(tx, '{"servers":' .. Reply.list(servers) .. ',"cursor":' .. cjson.encode(next_cursor)
    .. (version and ',"version":' .. version or '') .. (status and ',"sync":' .. status or '') .. '}')
end

--[[ Lists engines that are to pause for the change of weights under way (in mode `keep` at once, otherwise when they
have no leases any more), and records the intent first. One page of servers.
ARGV[1] JSON: {cursor}   string
Reply: EnginePausesPage
A pause that is not confirmed by weights/engine-told is listed again. An engine that cannot pause in that mode, or that
only its callers can reach, is left alone. While no weights change, engines whose entries Redis may have lost are
recorded as engines to resume, one page at each call.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local sync = Weights.sync(tx)
  local steps, page, cursor = {}, nil, nil

  local function can_pause(server)
    for _, mode in ipairs(PausedEngines.modes_of(tx, server) or {}) do
      if mode == sync.mode then return true end
    end
    return false
  end

  -- An engine that was paused for an earlier change resumes first.
  local function may_be_asked(entry)
    if not entry or entry.givenUpAtMs then return true end
    return entry.syncId == sync.syncId and (entry.state ~= 'paused' or entry.resumeAtMs ~= nil)
  end

  if sync then
    page, cursor = Pages.scan('ZSCAN', tx.key.servers, args.cursor, PAGE)
    for position = 1, #page, 2 do
      local server = Servers.get(tx, page[position])
      local name = server and PausedEngines.name_of(server)
      if server and (sync.mode == 'keep' or server.load == 0) and can_pause(server)
        and may_be_asked(PausedEngines.load(tx, name)) then
        PausedEngines.save(tx, name, { syncId = sync.syncId, serverId = server.id, state = 'asked',
          askedAtMs = tx.now })
        local address = ServerRecord.address_of(server)
        table.insert(steps, { serverId = server.id, endpoint = address.endpoint, dialect = address.dialect,
          syncId = sync.syncId, mode = sync.mode })
      end
    end
  else
    PausedEngines.review(tx)
  end
  return Reply.object({ steps = steps, cursor = cursor, resumes = redis.call('EXISTS', tx.key.pausedEngines) == 1 })
end

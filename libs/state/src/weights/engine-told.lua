--[[ Notes that an engine was paused, or was resumed, for a change of weights.
ARGV[1] JSON: {endpoint, dialect, syncId, paused; lateMs: how long a pause that was requested may take to arrive, and a
  resume is repeated}
Reply: late   true when the engine was paused after it was to resume: it must resume now
Events: server.paused, server.resumed.
Flags: allow-oom ]]
return function(tx, args)
  local name = PausedEngines.name(args.dialect, args.endpoint)
  local entry = PausedEngines.load(tx, name)
  local is_ours = entry ~= nil and entry.syncId == args.syncId
  local was_paused = is_ours and entry.state == 'paused'
  if args.paused then
    local sync = Weights.sync(tx)
    local late = not is_ours or entry.resumeAtMs ~= nil or not sync or sync.syncId ~= args.syncId
    if not late then
      entry.state = 'paused'
      PausedEngines.save(tx, name, entry)
      if not was_paused then
        Events.add(tx, 'server.paused', { serverId = entry.serverId, syncId = args.syncId })
      end
    end
    return Reply.object({ late = late })
  end
  if is_ours and entry.resumeAtMs and (was_paused or tx.now - entry.askedAtMs > args.lateMs) then
    redis.call('HDEL', tx.key.pausedEngines, name)
    -- An entry without a change was recorded because Redis may have lost entries: there was no `server.paused`.
    if was_paused and args.syncId ~= '' then
      Events.add(tx, 'server.resumed', { serverId = entry.serverId, syncId = args.syncId })
    end
  end
  return Reply.object({ late = false })
end

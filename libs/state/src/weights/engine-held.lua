--[[ Whether the change of weights of this pool that is under way keeps an engine paused.
ARGV[1] JSON: {endpoint, dialect}
Reply: held   boolean
Flags: no-writes ]]
return function(tx, args)
  local entry, sync = PausedEngines.load(tx, PausedEngines.name(args.dialect, args.endpoint)), Weights.sync(tx)
  return Reply.object({ held = entry ~= nil and sync ~= nil and entry.syncId == sync.syncId
    and entry.resumeAtMs == nil })
end

--[[ Compares engines that a replica has paused with their entries. Redis may have lost an entry, and would not resume
the engine: such an engine gets an entry whose change has ended. An engine that was given up gets no new entry.
ARGV[1] JSON: {steps}   list of {serverId, endpoint, dialect, syncId}, at most 128
Reply: recorded   list of booleans, one for each step: the engine had an entry for that change, which is not given up
Flags: allow-oom ]]
return function(tx, args)
  local recorded = {}
  for position, step in ipairs(args.steps) do
    local name = PausedEngines.name(step.dialect, step.endpoint)
    local entry = PausedEngines.load(tx, name)
    recorded[position] = entry ~= nil and entry.syncId == step.syncId and not entry.givenUpAtMs
    if not entry then
      PausedEngines.save(tx, name, { syncId = step.syncId, serverId = step.serverId, state = 'paused',
        askedAtMs = tx.now, resumeAtMs = tx.now })
    end
  end
  return Reply.object({ recorded = recorded })
end

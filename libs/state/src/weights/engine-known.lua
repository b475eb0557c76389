--[[ Compares what a replica has paused with what is recorded. Redis may have lost a record, and with it that the engine
is to resume: it is recorded as one whose change has ended. One that was given up is not recorded again.
ARGV[1] JSON: {steps}   list of {serverId, endpoint, dialect, syncId}, at most 128
Reply: recorded   list of booleans, in their order: the pause is recorded for that change, was before, and is not given
                  up
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

-- Everything that was set, as transitions read it.
local SettingsReply = {}

function SettingsReply.json(tx)
  local all = Hashes.all(tx.key.settings)
  return cjson.encode({
    settings = all,
    version = tonumber(all.version) or 0,
    isScored = all.version == all.scoredVersion,
    policy = all.policy or 'least-inflight',
    nextPolicy = all.nextPolicy,
  })
end

-- The settings as the history keeps them; the policy is the one wanted last.
function SettingsReply.history_entry(tx)
  local settings = Hashes.all(tx.key.settings)
  settings.policy = settings.nextPolicy or settings.policy
  return cjson.encode({ version = tonumber(settings.version) or 0, sinceMs = tx.now, settings = settings })
end

return SettingsReply

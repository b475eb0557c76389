-- Everything that was set, as the scripts see it.
local SettingsReply = {}

function SettingsReply.json(tx)
  local all = {}
  local flat = redis.call('HGETALL', tx.key.settings)
  for index = 1, #flat, 2 do all[flat[index]] = flat[index + 1] end
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
  local flat, settings = redis.call('HGETALL', tx.key.settings), {}
  for index = 1, #flat, 2 do settings[flat[index]] = flat[index + 1] end
  settings.policy = settings.nextPolicy or settings.policy
  return cjson.encode({ version = tonumber(settings.version) or 0, sinceMs = tx.now, settings = settings })
end

return SettingsReply

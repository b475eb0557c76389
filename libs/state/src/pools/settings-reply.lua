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

return SettingsReply

--[[ The settings of a pool.
Reply: RawSettings
Flags: allow-oom ]]
return function(tx)
  return SettingsReply.json(tx)
end

--[[ The settings of a pool.
Reply: RawSettings
Flags: allow-oom ]]
return function(tx)
  return Settings.json(tx)
end

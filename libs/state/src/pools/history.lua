--[[ The last versions of the settings of a pool.
Reply: versions   list of {version, sinceMs, settings: name -> text}, latest first
Flags: no-writes ]]
return function(tx)
  return '{"versions":' .. Reply.joined(redis.call('LRANGE', tx.key.settingsHistory, 0, -1)) .. '}'
end

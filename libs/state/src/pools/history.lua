--[[ The last versions of the settings of a pool.
Reply: versions        list of {version, sinceMs, settings: name -> text}, latest first; the first one has the settings
                       in force, with a weight version that was committed since
       weightVersion   the version of the weights that was committed last, if any
Flags: no-writes ]]
return function(tx)
  local versions = redis.call('LRANGE', tx.key.settingsHistory, 0, -1)
  if versions[1] or Settings.number(tx, 'version') then
    local since_ms = versions[1] and cjson.decode(versions[1]).sinceMs
    versions[1] = Settings.history_entry(tx, Settings.version(tx), since_ms)
  end
  local weights = redis.call('HGET', tx.key.weights, 'version')
  return '{"versions":' .. Reply.joined(versions) .. (weights and ',"weightVersion":' .. weights or '') .. '}'
end

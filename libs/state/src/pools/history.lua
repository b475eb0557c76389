--[[ The last versions of the settings of a pool.
Reply: versions        list of {version, sinceMs, settings: name -> text}, latest first
       weightVersion   the version of the weights that was committed last, if any
Flags: no-writes ]]
return function(tx)
  local versions = redis.call('LRANGE', tx.key.settingsHistory, 0, -1)
  if Settings.number(tx, 'version') and not Settings.is_in_history(tx) then
    table.insert(versions, 1, Settings.history_entry(tx))
  end
  local weights = redis.call('HGET', tx.key.weights, 'version')
  return '{"versions":' .. Reply.joined(versions) .. (weights and ',"weightVersion":' .. weights or '') .. '}'
end

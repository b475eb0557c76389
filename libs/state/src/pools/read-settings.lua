--[[ The settings of a pool.
ARGV[1] JSON: {}
Reply: settings    object: name -> text, of what was set
       version     number
       isScored    false while servers stand where older settings put them
       policy      in force
       nextPolicy? the one that takes over when all servers are scored for it
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx)
  return SettingsReply.json(tx)
end

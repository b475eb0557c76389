--[[ Changes settings of a pool, checked by the caller. Another policy is prepared first: the one in force decides until
every server is scored for both (servers/rescore), then pools/finish-settings lets the other one take over.
ARGV[1] JSON: {set: name -> text; reset: list of names; ifVersion: version that the settings must have, or absent}
Reply: RawSettings. The version grows by one when anything has changed, and the new version is added to the history,
  of which the last 32 are kept
Errors: VERSION_MISMATCH.
Flags: allow-oom ]]
return function(tx, args)
  local DEFAULT_POLICY = 'least-inflight'
  local KEPT = 32
  local changed = false
  local version = Settings.number(tx, 'version') or 0
  if args.ifVersion and args.ifVersion ~= version then
    return Reply.fail('VERSION_MISMATCH', 'The settings have the version ' .. Format.integer(version), 'ifVersion')
  end
  local first = version == 0 and Settings.history_entry(tx)

  local function put(name, value)
    -- As it is stored: for Settings `never` is the same as not set.
    if (redis.call('HGET', tx.key.settings, name) or nil) == value then return end
    changed = true
    if value then
      redis.call('HSET', tx.key.settings, name, value)
    else
      redis.call('HDEL', tx.key.settings, name)
    end
    tx.settings = nil
  end

  -- The policy wanted last is that which is coming, or else the one in force.
  local wanted = args.set.policy
  for _, name in ipairs(args.reset) do
    if name == 'policy' then
      wanted = wanted or DEFAULT_POLICY
    elseif args.set[name] == nil then
      put(name, nil)
    end
  end
  for name, value in pairs(args.set) do
    if name ~= 'policy' then put(name, value) end
  end
  local in_force = Settings.get(tx, 'policy') or DEFAULT_POLICY
  if wanted and wanted ~= (Settings.get(tx, 'nextPolicy') or in_force) then
    changed = true
    redis.call('DEL', tx.key.nextEligible)
    put('nextPolicy', wanted ~= in_force and wanted or nil)
    if wanted == 'consistent-hash' and in_force ~= wanted then
      redis.call('UNLINK', tx.key.ring)
      put('ringGeneration', Format.integer(redis.call('HINCRBY', tx.key.meta, 'ringGeneration', 1)))
    end
  end
  if changed then
    redis.call('HINCRBY', tx.key.settings, 'version', 1)
    tx.settings = nil
    if first then redis.call('LPUSH', tx.key.settingsHistory, first) end
    redis.call('LPUSH', tx.key.settingsHistory, Settings.history_entry(tx))
    redis.call('LTRIM', tx.key.settingsHistory, 0, KEPT - 1)
  end
  return Settings.json(tx)
end

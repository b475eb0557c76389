--[[ Changes settings of a pool, checked by the caller. A new policy is prepared first: the policy in force decides
until every server is scored for both (servers/rescore), then pools/finish-settings lets the new policy take over.
ARGV[1] JSON: {set: name -> text; reset: list of names; ifVersion: version that the settings must have, or absent}
Reply: RawSettings, also without a change. A change that is in force already succeeds with any ifVersion, so that a
  repeat succeeds. Each change raises the version and is added to the history, which keeps the last 32 versions
Errors: VERSION_MISMATCH.
Flags: allow-oom ]]
return function(tx, args)
  local DEFAULT_POLICY = 'least-inflight'
  local KEPT = 32
  local changed, gone = {}, {}

  local function put(name, value)
    -- The stored text is compared, because Settings reads `never` as not set.
    if (redis.call('HGET', tx.key.settings, name) or nil) == value then return end
    if value then changed[name] = value else table.insert(gone, name) end
  end

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
  -- Admission by KV memory also places by KV memory, unless the pool has chosen a policy.
  if not wanted and args.set.sessionAdmission == 'kv' and not tx.settings.policy and not tx.settings.nextPolicy then
    wanted = 'least-kv'
  end
  local in_force = Settings.get(tx, 'policy') or DEFAULT_POLICY
  -- The policy requested last is `nextPolicy`, or else the policy in force.
  local has_new_policy = wanted and wanted ~= (Settings.get(tx, 'nextPolicy') or in_force)
  if has_new_policy then put('nextPolicy', wanted ~= in_force and wanted or nil) end
  if not has_new_policy and not next(changed) and not gone[1] then return Settings.json(tx) end

  local version, revision = Settings.version(tx), Settings.number(tx, 'version') or 0
  if args.ifVersion and args.ifVersion ~= version then
    return Reply.fail('VERSION_MISMATCH', 'The settings have the version ' .. Format.integer(version), 'ifVersion')
  end
  if redis.call('EXISTS', tx.key.settingsHistory) == 0 then
    redis.call('LPUSH', tx.key.settingsHistory, Settings.history_entry(tx, version))
  end
  if has_new_policy then
    redis.call('DEL', tx.key.nextEligible)
    if wanted == 'consistent-hash' and in_force ~= wanted then
      redis.call('UNLINK', tx.key.ring)
      changed.ringGeneration = Format.integer(redis.call('HINCRBY', tx.key.meta, 'ringGeneration', 1))
    end
  end
  changed.version, changed.sinceMs = Format.integer(revision + 1), Format.integer(tx.now)
  Hashes.set(tx.key.settings, changed)
  if gone[1] then redis.call('HDEL', tx.key.settings, unpack(gone)) end
  tx.settings = nil
  redis.call('LPUSH', tx.key.settingsHistory, Settings.history_entry(tx, revision + 1))
  redis.call('LTRIM', tx.key.settingsHistory, 0, KEPT - 1)
  return Settings.json(tx)
end

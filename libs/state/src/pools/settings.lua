-- Settings of pool.configure, read once in a script: text by name; nil for a setting that is not set, or is `never`.
local Settings = {}

function Tx.fields.settings(tx)
  local settings = Hashes.all(tx.key.settings)
  for name, text in pairs(settings) do
    if text == 'never' then settings[name] = nil end
  end
  return settings
end

function Settings.get(tx, name) return tx.settings[name] end

function Settings.number(tx, name)
  local text = tx.settings[name]
  return text and tonumber(text)
end

-- Reason why the pool grants nothing (UNSERVED_REASONS of libs/contracts), or nil.
function Settings.pause_reason(tx)
  local settings = tx.settings
  if settings.syncing then return 'weights-changing' end
  return settings.paused == '1' and 'paused' or nil
end

-- Whether the pool may give a lease: the pool is not paused and has fewer leases than `poolMaxInflight`.
function Settings.takes_leases(tx)
  if Settings.pause_reason(tx) then return false end
  local most = tx.settings.poolMaxInflight
  return not most or LeaseTable.size(tx) < tonumber(most)
end

-- Version of the settings that callers name: the version of the newest change in the history. A change of weights
-- raises only the stored `version`, by which servers are scored, so that it refuses no change of an operator.
function Settings.version(tx)
  local newest = redis.call('LINDEX', tx.key.settingsHistory, 0)
  return newest and cjson.decode(newest).version or 0
end

-- All settings as they are stored: RawSettings, JSON. `revision` counts changes of weights too.
function Settings.json(tx)
  local all = Hashes.all(tx.key.settings)
  return cjson.encode({
    settings = all,
    version = Settings.version(tx),
    revision = tonumber(all.version) or 0,
    isScored = all.version == all.scoredVersion,
    policy = all.policy or 'least-inflight',
    nextPolicy = all.nextPolicy,
  })
end

-- The settings as the history keeps them; `policy` is the policy requested last.
function Settings.history_entry(tx, version, since_ms)
  local settings = Hashes.all(tx.key.settings)
  settings.policy = settings.nextPolicy or settings.policy
  return cjson.encode({ version = version, sinceMs = since_ms or tonumber(settings.sinceMs) or tx.now,
    settings = settings })
end

return Settings

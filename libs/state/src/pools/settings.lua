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

-- All settings as they are stored: RawSettings, JSON.
function Settings.json(tx)
  local all = Hashes.all(tx.key.settings)
  return cjson.encode({
    settings = all,
    version = tonumber(all.version) or 0,
    isScored = all.version == all.scoredVersion,
    policy = all.policy or 'least-inflight',
    nextPolicy = all.nextPolicy,
  })
end

-- Whether the history has the present version. The history lacks the first version, and versions made by changes of
-- weights.
function Settings.is_in_history(tx)
  local newest = redis.call('LINDEX', tx.key.settingsHistory, 0)
  return newest and cjson.decode(newest).version == (Settings.number(tx, 'version') or 0)
end

-- The settings as the history keeps them; `policy` is the policy requested last.
function Settings.history_entry(tx)
  local settings = Hashes.all(tx.key.settings)
  settings.policy = settings.nextPolicy or settings.policy
  return cjson.encode({ version = tonumber(settings.version) or 0, sinceMs = tonumber(settings.sinceMs) or tx.now,
    settings = settings })
end

return Settings

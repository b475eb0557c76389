-- One change of the weights of a pool. Under way it is a hash; ended, its last status, kept for repeats.
local WeightSync = {}

WeightSync.ENDED_KEPT_MS = 3600000

-- The change under way, or nil.
function WeightSync.load(tx)
  local sync = Hashes.all(tx.key.weightSync)
  if not sync.syncId then return nil end
  for _, name in ipairs({ 'version', 'fromVersion', 'startedAtMs', 'deadlineAtMs' }) do
    sync[name] = tonumber(sync[name])
  end
  return sync
end

-- WeightSync of the protocol, as JSON. Servers are those that take leases, or will when the pool continues.
function WeightSync.json(tx, sync, state, ended_at, reason)
  local version = Format.integer(sync.version)
  return cjson.encode({
    syncId = sync.syncId, job = sync.job, version = sync.version, mode = sync.mode, fromVersion = sync.fromVersion,
    state = state, startedAtMs = sync.startedAtMs, deadlineAtMs = sync.deadlineAtMs, endedAtMs = ended_at,
    reason = reason, running = redis.call('HLEN', tx.key.leases),
    servers = redis.call('SCARD', tx.key.usableServers),
    confirmedServers = redis.call('ZCOUNT', tx.key.serverVersions, version, version),
  })
end

return WeightSync

-- One change of the weights of a pool. Under way it is a hash; ended, its last status, kept for repeats.
local WeightSync = {}

WeightSync.ENDED_KEPT_MS = 3600000

-- The change under way, or nil.
function WeightSync.load(tx)
  local field = redis.call('HMGET', tx.key.weightSync, 'syncId', 'version', 'mode', 'fromVersion', 'startedAtMs',
    'deadlineAtMs',
    'job', 'trainerEpoch')
  if not field[1] then return nil end
  return {
    syncId = field[1], version = tonumber(field[2]), mode = field[3], fromVersion = tonumber(field[4]),
    startedAtMs = tonumber(field[5]), deadlineAtMs = tonumber(field[6]), job = field[7] or nil,
    trainerEpoch = field[8] or nil,
  }
end

-- WeightSync of the protocol, as JSON. Servers are those that take leases, or will when the pool goes on.
function WeightSync.json(tx, sync, state, ended_at, reason)
  local version = Format.integer(sync.version)
  return cjson.encode({
    syncId = sync.syncId, job = sync.job, version = sync.version, mode = sync.mode, fromVersion = sync.fromVersion,
      state = state,
    startedAtMs = sync.startedAtMs, deadlineAtMs = sync.deadlineAtMs, endedAtMs = ended_at, reason = reason,
    running = redis.call('HLEN', tx.key.leases),
    servers = redis.call('SCARD', tx.key.usableServers),
    confirmedServers = redis.call('ZCOUNT', tx.key.serverVersions, version, version),
  })
end

return WeightSync

-- The weights of a pool. A change of weights is a hash while it is under way; then its last status is kept for repeats.
local Weights = {}

Weights.ENDED_KEPT_MS = 3600000

-- The change under way, or nil.
function Weights.sync(tx)
  local sync = Hashes.all(tx.key.weightSync)
  if not sync.syncId then return nil end
  for _, name in ipairs({ 'version', 'fromVersion', 'startedAtMs', 'deadlineAtMs' }) do
    sync[name] = tonumber(sync[name])
  end
  return sync
end

-- WeightSync of the protocol, as JSON. `servers` counts servers that take leases, or will when the pool continues.
function Weights.sync_json(tx, sync, state, ended_at, reason)
  local version = Format.integer(sync.version)
  return cjson.encode({
    syncId = sync.syncId, job = sync.job, version = sync.version, mode = sync.mode, fromVersion = sync.fromVersion,
    state = state, startedAtMs = sync.startedAtMs, deadlineAtMs = sync.deadlineAtMs, endedAtMs = ended_at,
    reason = reason, running = redis.call('HLEN', tx.key.leases),
    servers = redis.call('SCARD', tx.key.usableServers),
    confirmedServers = redis.call('ZCOUNT', tx.key.serverVersions, version, version),
  })
end

-- The version that was committed last, or nil when no change of weights was committed in this pool.
local function committed_version(tx)
  local committed = tonumber(redis.call('HGET', tx.key.weights, 'version') or nil)
  local gate = tonumber(redis.call('HGET', tx.key.settings, 'requiredWeightVersion') or nil)
  if committed or gate then return math.max(committed or gate, gate or committed) end
end

-- The version of the pool: the version committed last, otherwise the newest version that a server reports.
function Weights.version(tx)
  return committed_version(tx) or tonumber(redis.call('ZREVRANGE', tx.key.serverVersions, 0, 0, 'WITHSCORES')[2] or 0)
end

-- Whether the pool can generate tokens of this version: the committed version; if none was committed, any version that
-- a server reports; if there is no server yet, any version.
function Weights.is_version(tx, version)
  local committed = committed_version(tx)
  if committed then return version == committed end
  return redis.call('ZCOUNT', tx.key.serverVersions, version, version) > 0 or redis.call('EXISTS',
    tx.key.serverVersions) == 0
end

-- A change in mode `keep` happens under running requests: tokens of an attempt that was claimed before the end of the
-- change and runs under an older version may be of both versions. `toWeightVersion` of the segment names the newer
-- version whenever that is possible; `mixedWeightVersion` shows readers of the parts of a segment that a change met the
-- attempt, and not only a later turn.
function Weights.mark_mixed(tx, request, segment)
  tx.kept_weights = tx.kept_weights or redis.call('HMGET', tx.key.weights, 'keptVersion', 'keptUntilMs')
  local version, until_ms = tonumber(tx.kept_weights[1] or nil), tonumber(tx.kept_weights[2] or nil)
  if not version then return segment end
  local made = cjson.decode(segment)
  if (made.weightVersion or 0) >= version then return segment end
  if until_ms and (Request.read_times(tx, request).claimedAtMs or 0) > until_ms then return segment end
  return string.sub(segment, 1, -2) .. string.format(',"toWeightVersion":%.0f,"mixedWeightVersion":%.0f}',
    math.max(version, made.toWeightVersion or 0), version)
end

return Weights

--- @include "../../includes/clock"
--- @include "../../includes/reply"
--- @include "../../includes/pool-version"
-- One change of the weights of a pool. Under way it is a hash; ended, its last status, kept for repeats.
local ENDED_KEPT_MS = 3600000

local function plain(number) return string.format('%.0f', number) end

-- The change under way, or nil.
local function load_sync()
  local field = redis.call('HMGET', key.weightSync, 'syncId', 'version', 'mode', 'fromVersion', 'startedAtMs', 'deadlineAtMs',
    'job', 'trainerEpoch')
  if not field[1] then return nil end
  return {
    syncId = field[1], version = tonumber(field[2]), mode = field[3], fromVersion = tonumber(field[4]),
    startedAtMs = tonumber(field[5]), deadlineAtMs = tonumber(field[6]), job = field[7] or nil,
    trainerEpoch = field[8] or nil,
  }
end

-- WeightSync of the protocol, as JSON. Servers are those that take leases, or will when the pool goes on.
local function sync_json(sync, state, ended_at, reason)
  local version = plain(sync.version)
  return cjson.encode({
    syncId = sync.syncId, job = sync.job, version = sync.version, mode = sync.mode, fromVersion = sync.fromVersion, state = state,
    startedAtMs = sync.startedAtMs, deadlineAtMs = sync.deadlineAtMs, endedAtMs = ended_at, reason = reason,
    running = redis.call('HLEN', key.leases),
    servers = redis.call('SCARD', key.usableServers),
    confirmedServers = redis.call('ZCOUNT', key.serverVersions, version, version),
  })
end

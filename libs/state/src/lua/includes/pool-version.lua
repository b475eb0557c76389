--- @include "keys"
-- The version that was committed last, or nil: nobody has changed the weights of this pool through it.
local function committed_version()
  local committed = tonumber(redis.call('HGET', key.weights, 'version') or nil)
  local gate = tonumber(redis.call('HGET', key.settings, 'requiredWeightVersion') or nil)
  if committed or gate then return math.max(committed or gate, gate or committed) end
end

-- The version the pool is at: the last one committed, else the newest that a server reports.
local function pool_version()
  return committed_version() or tonumber(redis.call('ZREVRANGE', key.serverVersions, 0, 0, 'WITHSCORES')[2] or 0)
end

-- Whether tokens of this version may come of the pool. Where nothing was committed it is what any server reports; where
-- there is no server yet, anything.
local function is_pool_version(version)
  local committed = committed_version()
  if committed then return version == committed end
  return redis.call('ZCOUNT', key.serverVersions, version, version) > 0 or redis.call('EXISTS', key.serverVersions) == 0
end

-- The version that was committed last, or nil: nobody has changed the weights of this pool through it.
local PoolVersion = {}

local function committed_version(tx)
  local committed = tonumber(redis.call('HGET', tx.key.weights, 'version') or nil)
  local gate = tonumber(redis.call('HGET', tx.key.settings, 'requiredWeightVersion') or nil)
  if committed or gate then return math.max(committed or gate, gate or committed) end
end

-- The version the pool is at: the last one committed, else the newest that a server reports.
function PoolVersion.current(tx)
  return committed_version(tx) or tonumber(redis.call('ZREVRANGE', tx.key.serverVersions, 0, 0, 'WITHSCORES')[2] or 0)
end

-- Whether tokens of this version may come of the pool. Where nothing was committed it is what any server reports; where
-- there is no server yet, anything.
function PoolVersion.is_current(tx, version)
  local committed = committed_version(tx)
  if committed then return version == committed end
  return redis.call('ZCOUNT', tx.key.serverVersions, version, version) > 0 or redis.call('EXISTS',
    tx.key.serverVersions) == 0
end

return PoolVersion

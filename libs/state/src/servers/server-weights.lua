-- The weights of a server: which version counts, whether the weights are known, and how the prefix cache of the engine
-- is kept free of entries of other weights.
local ServerWeights = {}

-- Returns two booleans, unknown and stale. Unknown: the engine may hold a part of new weights. A change of weights
-- ended at its deadline, or a load failed, and the server was not reported since the change started or the load failed.
-- Stale: the weights are known, but the engine must empty its prefix cache first, because it has refused to, or because
-- it has no salts and a change has started since the last report. No lease is granted while a change is under way, so
-- the cache is emptied after its end.
function ServerWeights.state(tx, server)
  local is_awaited = server.awaitsReset or false
  local unknown_before, began = Settings.number(tx, 'weightsUnknownBeforeMs'), Settings.number(tx, 'weightsBeganMs')
  if not unknown_before and not began then return false, is_awaited end
  local at, cache = ServerRecord.weights(server)
  if at < (unknown_before or 0) then return true, false end
  if at >= (began or 0) then return false, is_awaited end
  return false, not tx.settings.syncing and (is_awaited or cache == ServerRecord.CACHES.reset and server.probed)
end

-- Sets the weights of a server, as its engine or its trainer reports them now.
function ServerWeights.set_version(tx, server, version)
  server.awaitsReset = nil
  ServerHash.change(tx, server.id, { weightsAtMs = WeightClock.next(tx), awaitsReset = false })
  ServerHash.unset(tx, server.id, 'pendingVersion')
  ServerWeights.restore_version(tx, server, version)
end

-- Makes the weights of a server unknown until they are reported: a load has failed part-way, so the engine may have a
-- part of the new weights.
function ServerWeights.set_unknown(tx, server)
  local BEFORE_ALL_MS = -1
  server.awaitsReset = nil
  ServerHash.change(tx, server.id, { weightsAtMs = BEFORE_ALL_MS, awaitsReset = false })
  ServerHash.unset(tx, server.id, 'pendingVersion')
  if tx.settings.weightsUnknownBeforeMs then return end
  redis.call('HSET', tx.key.settings, 'weightsUnknownBeforeMs', 0)
  tx.settings.weightsUnknownBeforeMs = '0'
end

-- Restores the version that a server had before it failed. This is no report, so weights that were unknown stay
-- unknown.
function ServerWeights.restore_version(tx, server, version)
  server.weightVersion = version
  ServerHash.change(tx, server.id, { weightVersion = version })
  ServerHash.unset(tx, server.id, 'versionBefore')
end

-- Notes that the engine has weights of this version, but has not emptied its prefix cache. The server takes no leases
-- until the cache is empty. The load-balancer asks the engine again at each probe.
function ServerWeights.await_reset(tx, server, version)
  server.awaitsReset = true
  ServerHash.change(tx, server.id, { weightsAtMs = WeightClock.next(tx), awaitsReset = true })
  ServerHash.set(tx, server.id, 'pendingVersion', Format.integer(version))
end

-- The version that counts once the engine has emptied its prefix cache, or nil.
function ServerWeights.pending_version(tx, server)
  local _, is_stale = ServerWeights.state(tx, server)
  if not is_stale then return nil end
  return tonumber(redis.call('HGET', tx.key:server(server.id), 'pendingVersion') or nil) or server.weightVersion
end

-- Notes that the engine has emptied its prefix cache, unless another change of weights has started since `began`.
function ServerWeights.confirm_reset(tx, server, began)
  local version = ServerWeights.pending_version(tx, server)
  if not version or began ~= (Settings.number(tx, 'weightsBeganMs') or 0) then return end
  ServerWeights.set_version(tx, server, version)
end

-- Sets how the prefix cache of an engine is kept free of entries of other weights. `capabilities`: JSON text.
function ServerWeights.set_cache(tx, id, capabilities)
  local can = cjson.decode(capabilities)
  local cache = can.cacheSalt and ServerRecord.CACHES.salt or can.prefixCacheReset and ServerRecord.CACHES.reset
  ServerHash.change(tx, id, { cache = cache or ServerRecord.CACHES.none })
end

-- Description of a server for the reply to a grant, as in ServerRecord.describe, with the `streamInterval` of the pool.
-- The salt names the weights for prefix caches: no two weights of a server have the same salt, since each report and
-- each start of a change has a later time.
function ServerWeights.describe(tx, server)
  local text = ServerRecord.describe(server, Settings.number(tx, 'weightsBeganMs'))
  local interval = Settings.number(tx, 'streamInterval')
  return interval and string.sub(text, 1, -2) .. ',"streamInterval":' .. Format.integer(interval) .. '}' or text
end

return ServerWeights

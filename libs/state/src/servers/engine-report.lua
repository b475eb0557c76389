-- The report of an engine, beside its registration. A later start than the known start, or a list of models that shares
-- no name with the known list, is a restart: the server gets a new epoch, its weights are unknown until they are named,
-- and it takes no leases until the engine has described itself. A reported weight version counts if it differs from the
-- report that was known at the probe and that report is still stored, so that a late report undoes no later report. The
-- first report of a start whose weights a trainer has named is only stored. A failure does not change the stored
-- report.
local EngineReport = {}

-- The seconds of an instanceId `started-<seconds>`, of an engine that reports no instance id.
local function start_of(instance_id)
  return tonumber(instance_id and string.match(instance_id, '^started%-([%d.]+)$') or nil)
end

-- The later of the noted start and the start of the registration; nil when neither is known.
local function known_start(noted, instance_id)
  local registered = start_of(instance_id)
  return noted and registered and math.max(noted, registered) or noted or registered
end

-- Whether the start that an instanceId names is the known start of the server, or an earlier start.
function EngineReport.is_no_later(tx, id, instance_id, known_instance_id)
  local start = start_of(instance_id)
  if not start then return false end
  local noted = tonumber(redis.call('HGET', tx.key:server(id), 'engineStartedAt') or nil)
  return start <= (known_start(noted, known_instance_id) or -1)
end

local function restart_server(tx, server, new_epoch)
  ServerHash.unset(tx, server.id, 'fenced')
  Servers.fail(tx, server, new_epoch)
  ServerHash.unset(tx, server.id, 'versionBefore', 'engineVersion', 'engineStartedAt', 'capabilities',
    'observedInterval', 'loadRunning', 'loadWaiting', 'kvUse', 'kvTokens', 'loadPreemptions', 'loadUncachedTokens',
    'loadAtMs')
  Servers.set_lacks(tx, server.id, '')
  server.lacks = nil
  Models.set(tx, server.id, '')
  -- A new start has filled no cache, and no change of weights has reached the engine.
  ServerHash.change(tx, server.id, { cache = false })
  ServerWeights.set_version(tx, server, 0)
end

-- Notes the mean tokens of an event that a caller has received, if they are not as the engine was asked; 0: they are.
function EngineReport.note_interval(tx, id, tokens)
  if tokens == 0 then return ServerHash.unset(tx, id, 'observedInterval') end
  ServerHash.set(tx, id, 'observedInterval', tokens)
end

-- True when both lists are known and have no name in common: another model was loaded.
local function has_other_models(tx, server, report)
  local known = redis.call('HGET', tx.key:server(server.id), 'models')
  if not known or not report.models then return false end
  for _, name in ipairs(Models.names(report.models)) do
    if name == Models.ANY or Models.has(tx.model_lists.by_text[known], name) then return false end
  end
  return true
end

-- Makes a pending or failed server ready, since its engine has described itself. A failed server may have started
-- again: the model of its registration counts as long as the engine lists it.
function EngineReport.describe(tx, server, model)
  if Servers.is_fenced(tx, server) or (server.state ~= 'pending' and server.state ~= 'failed') then return end
  local known = ServerRecord.address_of(server).model
  local is_kept = known and (server.state == 'pending' or Models.are_listed(tx, server, known))
  if not is_kept then ServerHash.change(tx, server.id, { model = model or false }) end
  server.state, server.held = 'ready', false
  redis.call('ZADD', tx.key.servers, Format.integer(tx.now), server.id)
  redis.call('ZADD', tx.key.watchedServers, Format.integer(tx.now), server.id)
  Servers.begin_slow_start(tx, server)
end

-- Applies a report; true for a restart. `report`: {startedAtSeconds?, weightVersion?, knownWeightVersion?, models?}
--   weightVersion        below 0: the engine has no number for its weights
--   knownWeightVersion   the previous report, read before the engine was probed
--   models               one a line
function EngineReport.apply(tx, server, report, new_epoch)
  local started_at, version = report.startedAtSeconds, report.weightVersion
  local of_engine = redis.call('HMGET', tx.key:server(server.id), 'engineStartedAt', 'engineVersion')
  local noted, known_version = tonumber(of_engine[1] or nil), tonumber(of_engine[2] or nil)
  local known = known_start(noted, ServerRecord.instance_of(server))
  local is_late = known_version ~= report.knownWeightVersion
  local is_restart = known ~= nil and started_at ~= nil and started_at > known
  is_restart = is_restart or has_other_models(tx, server, report)
  if is_restart then
    restart_server(tx, server, new_epoch)
    noted = nil
  elseif known and started_at == known then
    -- The server had failed; its engine has not restarted and has the same weights.
    local before = redis.call('HGET', tx.key:server(server.id), 'versionBefore')
    if before then ServerWeights.restore_version(tx, server, tonumber(before)) end
  end
  local latest = started_at and math.max(started_at, known or 0)
  if latest and latest ~= noted then
    ServerHash.set(tx, server.id, 'engineStartedAt', string.format('%.3f', latest))
  end
  if not version or is_late then return is_restart end
  if is_restart then known_version = nil end
  local before = tonumber(redis.call('HGET', tx.key:server(server.id), 'versionBefore') or nil)
  if version == known_version then
    -- The start is unknown: the report is the same as before the failure, and no other version was named.
    if version == before then ServerWeights.restore_version(tx, server, version) end
    return is_restart
  end
  ServerHash.set(tx, server.id, 'engineVersion', Format.integer(version))
  local is_named = not known_version and (server.weightVersion > 0 or before)
  if not is_named or version == before then ServerWeights.set_version(tx, server, math.max(0, version)) end
  return is_restart
end

return EngineReport

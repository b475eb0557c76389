-- The report of an engine, beside its registration. A later start than the known one is a restart: a new epoch, whose
-- weights are unknown until they are named. A reported weight version counts if it has changed, and only if the stored
-- version is still the one that was known at the probe, so a late report undoes no later one. The first report of a
-- start whose weights a trainer has named is only stored. A failure does not change the stored report.
local EngineReport = {}

-- The seconds of an instanceId `started-<seconds>`, of an engine that reports no instance id.
local function start_of(instance_id)
  return tonumber(instance_id and string.match(instance_id, '^started%-([%d.]+)$') or nil)
end

-- The later of the start that is noted and the one that the server is registered with; nil when there is neither.
local function known_start(noted, instance_id)
  local registered = start_of(instance_id)
  return noted and registered and math.max(noted, registered) or noted or registered
end

-- Whether the start that an instanceId names is the one of the server, or an earlier one.
function EngineReport.is_no_later(tx, id, instance_id, known_instance_id)
  local start = start_of(instance_id)
  if not start then return false end
  local noted = tonumber(redis.call('HGET', tx.key:server(id), 'engineStartedAt') or nil)
  return start <= (known_start(noted, known_instance_id) or -1)
end

local function restart_server(tx, server, new_epoch, now)
  ServerHash.unset(tx, server.id, 'fenced')
  Servers.fail(tx, server, new_epoch)
  ServerHash.unset(tx, server.id, 'versionBefore', 'engineVersion')
  server.state = 'ready'
  redis.call('ZADD', tx.key.watchedServers, Format.integer(now), server.id)
  Servers.begin_slow_start(tx, server)
end

-- `report`: {startedAtSeconds?, weightVersion?, knownWeightVersion?}; weightVersion below 0: the engine has no number
-- for its weights; knownWeightVersion: the previous report, read before the engine was probed. True for a restart.
function EngineReport.apply(tx, server, report, new_epoch, now)
  local started_at, version = report.startedAtSeconds, report.weightVersion
  local of_engine = redis.call('HMGET', tx.key:server(server.id), 'engineStartedAt', 'engineVersion')
  local noted, known_version = tonumber(of_engine[1] or nil), tonumber(of_engine[2] or nil)
  local known = known_start(noted, ServerRecord.instance_of(server))
  local is_late = known_version ~= report.knownWeightVersion
  local is_restart = known ~= nil and started_at ~= nil and started_at > known
  if is_restart then
    restart_server(tx, server, new_epoch, now)
  elseif known and started_at == known then
    -- The server had failed; its engine has not restarted and has the same weights.
    local before = redis.call('HGET', tx.key:server(server.id), 'versionBefore')
    if before then Servers.set_version(tx, server, tonumber(before)) end
  end
  local latest = started_at and math.max(started_at, known or 0)
  if latest and latest ~= noted then
    ServerHash.set(tx, server.id, 'engineStartedAt', string.format('%.3f', latest))
  end
  if not version or is_late then return is_restart end
  if is_restart then known_version = nil end
  local before = tonumber(redis.call('HGET', tx.key:server(server.id), 'versionBefore') or nil)
  if version == known_version then
    -- The start is unknown: the report is the one before the failure, and no other version was named.
    if version == before then Servers.set_version(tx, server, version) end
    return is_restart
  end
  ServerHash.set(tx, server.id, 'engineVersion', Format.integer(version))
  local is_named = not known_version and (server.weightVersion > 0 or before)
  if not is_named or version == before then Servers.set_version(tx, server, math.max(0, version)) end
  return is_restart
end

return EngineReport

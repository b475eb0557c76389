-- What an engine reports of itself, beside what it was registered with. A later start than it had is a restart: a new
-- epoch, whose weights are unknown until they are named. Its own report of its weights counts when it changes, and only
-- from the report that was known when it was asked, so a report that is read late undoes no later report. The first
-- report of a start whose weights a trainer has named is only noted. A failure does not change what is noted.
local EngineReport = {}

-- The seconds of an instanceId `started-<seconds>`, which stands for an engine without an identity of its own.
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

-- `said`: {startedAtSeconds?, weightVersion?, knownWeightVersion?}; a weightVersion below 0: it has no number for its
-- weights; knownWeightVersion: its report before, as it was read before the engine was asked. True for a restart.
function EngineReport.heed(tx, server, said, new_epoch, now)
  local started_at, word = said.startedAtSeconds, said.weightVersion
  local of_engine = redis.call('HMGET', tx.key:server(server.id), 'engineStartedAt', 'engineVersion')
  local noted, known_word = tonumber(of_engine[1] or nil), tonumber(of_engine[2] or nil)
  local known = known_start(noted, ServerRecord.instance_of(server))
  local is_late = known_word ~= said.knownWeightVersion
  local is_restart = known ~= nil and started_at ~= nil and started_at > known
  if is_restart then
    restart_server(tx, server, new_epoch, now)
  elseif known and started_at == known then
    -- It had failed, and has the weights that it had.
    local before = redis.call('HGET', tx.key:server(server.id), 'versionBefore')
    if before then Servers.set_version(tx, server, tonumber(before)) end
  end
  local latest = started_at and math.max(started_at, known or 0)
  if latest and latest ~= noted then
    ServerHash.set(tx, server.id, 'engineStartedAt', string.format('%.3f', latest))
  end
  if not word or is_late then return is_restart end
  if is_restart then known_word = nil end
  local before = tonumber(redis.call('HGET', tx.key:server(server.id), 'versionBefore') or nil)
  if word == known_word then
    -- Its start is not known: the same report as before it failed, and no other was named.
    if word == before then Servers.set_version(tx, server, word) end
    return is_restart
  end
  ServerHash.set(tx, server.id, 'engineVersion', Format.integer(word))
  local is_named = not known_word and (server.weightVersion > 0 or before)
  if not is_named or word == before then Servers.set_version(tx, server, math.max(0, word)) end
  return is_restart
end

return EngineReport

-- Servers as a transition sees them: each record is read once; the load of a server is the number of its leases.
local Servers = {}

function Tx.fields.known_servers() return {} end

local function know(tx, id, packed)
  local server = packed and ServerRecord.unpack(id, packed)
  tx.known_servers[id] = server
  if not server then return nil end
  server.leases_key = tx.key:serverLeases(id, server.epoch)
  server.load = redis.call('SCARD', server.leases_key)
  return server
end

function Servers.get(tx, id)
  local server = tx.known_servers[id]
  if server == nil then return know(tx, id, redis.call('HGET', tx.key.serverRecords, id)) end
  return server or nil
end

-- The server that a call names, or nil and the error to answer. With `epoch` only while the server has this epoch.
function Servers.named(tx, args)
  local server = Servers.get(tx, args.serverId)
  if not server then return nil, Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
  if args.epoch and args.epoch ~= server.epoch then
    return nil, Reply.fail('FENCED', 'The epoch of the server is not the current one', 'epoch')
  end
  return server
end

-- Reads the servers of the first `count` ids that are not known yet, with one call.
function Servers.read(tx, ids, count)
  local unknown = {}
  for position = 1, count do
    local id = ids[position]
    if tx.known_servers[id] == nil then unknown[#unknown + 1], tx.known_servers[id] = id, false end
  end
  if not unknown[1] then return end
  for position, packed in ipairs(redis.call('HMGET', tx.key.serverRecords, unpack(unknown))) do
    know(tx, unknown[position], packed)
  end
end

function Servers.labels_of(tx, server)
  if not server.labels then
    local packed = redis.call('HGET', tx.key:server(server.id), 'labels')
    server.labels = packed and cjson.decode(packed) or {}
  end
  return server.labels
end

-- Features that the engine of a server is known to lack: feature -> true.
function Servers.lacks_of(tx, server)
  if not server.lacks then
    server.lacks = {}
    for feature in string.gmatch(redis.call('HGET', tx.key:server(server.id), 'lacks') or '', '%a+') do
      server.lacks[feature] = true
    end
  end
  return server.lacks
end

-- `lacks`: names with commas between. Servers that lack a feature are counted, so that a feature which no server has is
-- known at once.
function Servers.set_lacks(tx, id, lacks)
  for feature in string.gmatch(redis.call('HGET', tx.key:server(id), 'lacks') or '', '%a+') do
    if redis.call('HINCRBY', tx.key.lackingServers, feature, -1) == 0 then redis.call('HDEL', tx.key.lackingServers,
      feature) end
  end
  for feature in string.gmatch(lacks, '%a+') do redis.call('HINCRBY', tx.key.lackingServers, feature, 1) end
  ServerHash.set(tx, id, 'lacks', lacks)
end

-- Why the weights of servers keep every server from leases: reason (UNSERVED_REASONS of libs/contracts), and the first
-- such server; or nil. Only the first servers are read: all servers of a pool had the same change of weights.
function Servers.find_weight_obstacle(tx)
  local SERVERS_READ = 16
  local unknown_before, wanted = tx.settings.weightsUnknownBeforeMs, Settings.number(tx, 'requiredWeightVersion')
  if not unknown_before and not wanted or redis.call('SCARD', tx.key.usableServers) > 0 then return nil end
  local other
  for _, id in ipairs(redis.call('ZRANGE', tx.key.servers, 0, SERVERS_READ - 1)) do
    local server = Servers.get(tx, id)
    if server then
      local is_unknown, is_stale = ServerWeights.state(tx, server)
      if is_unknown then return 'weights-unknown', server end
      if wanted and server.weightVersion ~= wanted and not is_stale and ServerHash.takes_leases(server) then
        other = other or server
      end
    end
  end
  if other then return 'weights-differ', other end
end

-- The weight-version gate: a server takes no leases while its weights are unknown, its prefix cache is to be emptied,
-- or its weights are of another version than the pool requires. While the weights change, servers with the new version
-- pass too, so that they are ready at the commit.
local function is_quarantined(tx, server)
  local is_unknown, is_stale = ServerWeights.state(tx, server)
  if is_unknown or is_stale then return true end
  local wanted = tx.settings.requiredWeightVersion
  if not wanted or server.weightVersion == tonumber(wanted) then return false end
  return server.weightVersion ~= Settings.number(tx, 'syncing')
end

function Servers.is_usable(tx, server) return ServerHash.takes_leases(server) and not is_quarantined(tx, server) end

-- The state in replies. `state` in the record is the state by probes; cordon and drain are separate fields.
function Servers.shown_state(tx, server)
  if server.state == 'failed' then return 'failed' end
  if server.drainUntilMs then return 'draining' end
  if server.cordoned or server.withheld then return 'cordoned' end
  if is_quarantined(tx, server) then return 'quarantined' end
  return server.state
end

-- Maximum of leases now: a new start grows to its capacity in slowStartMs, and adaptive concurrency may lower it. As
-- slowStartCapacity in libs/policies.
function Servers.capacity(tx, server)
  local most = math.min(server.maxInflight, server.limit or math.huge)
  local slow_start = Settings.number(tx, 'slowStartMs')
  if slow_start and slow_start > 0 and server.startedAtMs then
    local age = math.max(0, tx.now - server.startedAtMs)
    if age < slow_start then
      local first = Settings.number(tx, 'slowStartFraction') or 0.1
      local share = first + (1 - first) * (age / slow_start)
      most = math.min(most, math.max(1, math.floor(server.maxInflight * share)))
    end
  end
  return most
end

function Servers.has_room(tx, server)
  -- `most` is computed once: neither time nor settings change in a transition, and changes of the server reset it.
  local most = server.most
  if not most then
    local takes = Servers.is_usable(tx, server) and not ServerHash.is_paused(tx, server)
    most = takes and Servers.capacity(tx, server) or 0
    server.most = most
  end
  return server.load < most
end

-- Puts the server in its place by state and load: least loaded first; among equals, the server chosen longest ago.
function Servers.rescore(tx, server)
  server.most, server.place = nil, nil
  Scores.forget_order(tx)
  if Servers.has_room(tx, server) then Scores.place(tx, { server }) else Scores.withdraw(tx, server.id) end
end

-- Loads change often in one script, so scores are only written before they are read from Redis again, or at the end.
function Tx.fields.moved_servers() return {} end
function Servers.rescore_later(tx, server)
  Scores.forget_order(tx)
  server.place = nil
  tx.moved_servers[server.id] = server
end

function Servers.write_scores(tx)
  if not rawget(tx, 'moved_servers') then return end
  local placed, chosen = {}, {}
  for id, server in pairs(tx.moved_servers) do
    if Servers.has_room(tx, server) then placed[#placed + 1] = server else Scores.withdraw(tx, id) end
    if server.chosen_text then
      chosen[#chosen + 1] = id
      chosen[#chosen + 1] = server.chosen_text
      server.chosen_text = nil
    end
  end
  tx.moved_servers = nil
  Scores.place(tx, placed)
  if chosen[1] then redis.call('HSET', tx.key.serverChosen, unpack(chosen)) end
end

-- Publishes a change of state: in the record, the set of usable servers, the lanes (so that sessions can leave an
-- unusable server), and the order.
function Servers.publish(tx, server)
  ServerHash.change(tx, server.id, { state = server.state, held = server.held })
  if server.state ~= 'pending' then redis.call('ZREM', tx.key.pendingServers, server.id) end
  if Servers.is_usable(tx, server) then
    redis.call('SADD', tx.key.usableServers, server.id)
  else
    redis.call('SREM', tx.key.usableServers, server.id)
    redis.call('SADD', tx.key.rehomedLanes, server.id)
  end
  Scores.place_version(tx, server, Servers.is_usable(tx, server))
  Servers.rescore(tx, server)
  Encodings.zset_as_skip_list(tx.key.eligible)
end

-- Starts the slow start after a new start of the engine: its caches are cold, so its load grows slowly.
function Servers.begin_slow_start(tx, server)
  server.startedAtMs = tx.now
  ServerHash.change(tx, server.id, { startedAtMs = server.startedAtMs })
  local slow_start = Settings.number(tx, 'slowStartMs') or 0
  if slow_start > 0 then
    redis.call('ZADD', tx.key.warmingServers, Format.integer(server.startedAtMs + slow_start), server.id)
  end
end

-- Expires an epoch: its leases count no more, and the sweeper returns them.
function Servers.expire_epoch(tx, id, epoch)
  redis.call('SADD', tx.key.expiredLeaseEpochs, 'server:' .. id .. ':' .. epoch)
end

-- Starts a new epoch of a server; leases and sessions of the epoch before are expired.
function Servers.begin_epoch(tx, server, new_epoch)
  Servers.expire_epoch(tx, server.id, server.epoch)
  server.epoch = new_epoch
  server.leases_key = tx.key:serverLeases(server.id, new_epoch)
  server.load = 0
  ServerHash.change(tx, server.id, { epoch = new_epoch })
  Signs.forget(tx, server.id)
end

-- Fails a server: leases and sessions of its epoch are expired, and the server takes no leases until it reports again
-- (or, if fenced, starts again). The engine may restart before its next report: its weight version is 0 until the
-- version is named, or until the engine turns out to be the same start.
function Servers.fail(tx, server, new_epoch)
  if server.weightVersion > 0 then
    local before = Format.integer(server.weightVersion)
    ServerWeights.restore_version(tx, server, 0)
    ServerHash.set(tx, server.id, 'versionBefore', before)
  end
  Servers.begin_epoch(tx, server, new_epoch)
  server.state = 'failed'
  server.held = false
  server.trouble = nil
  FailingServers.forget(tx, server.id)
  ServerHash.change(tx, server.id, { trouble = false })
  redis.call('ZREM', tx.key.watchedServers, server.id)
  Servers.publish(tx, server)
end

-- True when the server was fenced: only a new start makes it ready again.
function Servers.is_fenced(tx, server) return redis.call('HEXISTS', tx.key:server(server.id), 'fenced') == 1 end

-- Takes a server out of every index; its leases and sessions are expired at once.
function Servers.forget(tx, server)
  Servers.expire_epoch(tx, server.id, server.epoch)
  Servers.set_lacks(tx, server.id, '')
  Models.set(tx, server.id, '')
  ServerHash.delete(tx, server.id)
  Scores.forget_order(tx)
  for _, index in ipairs({ 'servers', 'watchedServers', 'pendingServers', 'eligible', 'warmingServers',
    'drainingServers' }) do
    redis.call('ZREM', tx.key[index], server.id)
  end
  Scores.forget(tx, server)
  Signs.forget(tx, server.id)
  redis.call('SREM', tx.key.usableServers, server.id)
  redis.call('SADD', tx.key.rehomedLanes, server.id)
  tx.known_servers[server.id] = false
  tx.moved_servers[server.id] = nil
end

-- The load that an engine reported, with its age, or nil. Choices use the number of leases as load, not this report.
function Servers.load_report(tx, server)
  local field = redis.call('HMGET', tx.key:server(server.id), 'loadRunning', 'loadWaiting', 'kvUse', 'loadPreemptions',
    'loadAtMs', 'kvTokens')
  if not field[5] then return nil end
  return {
    running = tonumber(field[1]),
    waiting = tonumber(field[2]),
    kvUse = tonumber(field[3] or nil),
    kvTokens = tonumber(field[6] or nil),
    preemptions = tonumber(field[4] or nil),
    ageMs = math.max(0, tx.now - tonumber(field[5])),
  }
end

return Servers

--- @include "../../includes/keys"
-- Servers as this script sees them: a hash is read once; the load of a server is the number of its leases.
local LOAD_UNIT = 4294967296 -- 2^32, the room for the sequence of the last choice
local HIGHEST_LOAD = 1048576 -- 2^20: above it all loads count as equal, so that scores stay exact
local known_servers = {}

local function server_of(id)
  local known = known_servers[id]
  if known ~= nil then return known or nil end
  local field = redis.call('HMGET', key.server(id), 'epoch', 'state', 'held', 'endpoint', 'dialect', 'model',
    'maxInflight', 'weight', 'weightVersion', 'chosen', 'instanceId')
  if not field[1] then
    known_servers[id] = false
    return nil
  end
  local server = {
    id = id,
    epoch = tonumber(field[1]),
    state = field[2],
    held = field[3] == '1',
    endpoint = field[4],
    dialect = field[5],
    model = field[6] or nil,
    maxInflight = tonumber(field[7]),
    weight = tonumber(field[8]),
    weightVersion = tonumber(field[9]),
    chosen = tonumber(field[10]) or 0,
    instanceId = field[11] or nil,
  }
  server.load = redis.call('SCARD', key.serverLeases(id, server.epoch))
  known_servers[id] = server
  return server
end

-- A suspect that is held takes leases: most servers went silent together, which says more about us than about them.
local function is_usable(server)
  return server.state == 'ready' or (server.state == 'suspect' and server.held)
end

local function has_room(server)
  return is_usable(server) and server.load < server.maxInflight
end

-- Puts the server where its state and load say: least loaded first, among equals the one chosen longest ago.
local function rescore(server)
  if has_room(server) then
    local load = math.min(HIGHEST_LOAD, math.floor(server.load / server.weight))
    redis.call('ZADD', key.eligible, string.format('%.0f', load * LOAD_UNIT + server.chosen), server.id)
  else
    redis.call('ZREM', key.eligible, server.id)
  end
end

-- Loads move often in one script: scores are written when the next choice reads them, or at the end.
local moved_servers = {}
local function rescore_later(server)
  moved_servers[server.id] = server
end
local function write_scores()
  for id, server in pairs(moved_servers) do
    rescore(server)
    moved_servers[id] = nil
  end
end

-- After a change of state: also says whether the pool has a server at all, and lets sessions of a lost one move.
local function publish_state(server)
  redis.call('HSET', key.server(server.id), 'state', server.state, 'held', server.held and '1' or '0')
  if is_usable(server) then
    redis.call('SADD', key.usableServers, server.id)
  else
    redis.call('SREM', key.usableServers, server.id)
    redis.call('SADD', key.rehomedLanes, server.id)
  end
  rescore(server)
end

-- Epochs are never given twice in a pool, so a server that was removed and comes back is told from its past.
local function next_server_epoch()
  return redis.call('HINCRBY', key.meta, 'serverEpoch', 1)
end

-- The leases of this epoch count no more; the sweeper returns them.
local function void_server_epoch(id, epoch)
  redis.call('SADD', key.voidLeaseEpochs, string.format('server:%s:%.0f', id, epoch))
end

-- What a caller must know of a server.
local function describe(server)
  return {
    epoch = server.epoch,
    endpoint = server.endpoint,
    dialect = server.dialect,
    model = server.model,
    weightVersion = server.weightVersion,
  }
end

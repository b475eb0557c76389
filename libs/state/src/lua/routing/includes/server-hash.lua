--- @include "../../includes/keys"
-- The hash of a server, and its card: what plain-pool.lua keeps of it for reading many servers by one command. Whatever
-- changes the hash goes through the three functions below, which throw the card away.

local function set_server(id, ...)
  redis.call('HSET', key.server(id), ...)
  redis.call('HDEL', key.serverCards, id)
end

local function unset_server(id, ...)
  redis.call('HDEL', key.server(id), ...)
  redis.call('HDEL', key.serverCards, id)
end

local function delete_server(id)
  redis.call('DEL', key.server(id))
  redis.call('HDEL', key.serverCards, id)
  redis.call('HDEL', key.serverChosen, id)
end

-- A suspect that is held takes leases: most servers went silent together, which says more about us than about them.
-- The weight-version gate comes on top, see is_quarantined.
local function takes_leases(server)
  if server.cordoned or server.drainUntilMs then return false end
  return server.state == 'ready' or (server.state == 'suspect' and server.held)
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

-- The server as its hash has it, without its load; nil for an unknown one.
local function read_server(id)
  local field = redis.call('HMGET', key.server(id), 'epoch', 'state', 'held', 'endpoint', 'dialect', 'model',
    'maxInflight', 'weight', 'weightVersion', 'instanceId', 'cordoned', 'drainUntilMs', 'startedAtMs', 'limit')
  if not field[1] then return nil end
  return {
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
    instanceId = field[10] or nil,
    cordoned = field[11] == '1',
    drainUntilMs = tonumber(field[12] or nil),
    startedAtMs = tonumber(field[13] or nil),
    limit = tonumber(field[14] or nil),
  }
end

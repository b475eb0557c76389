-- The hash of a server, and what is kept of it beside: its card, for plain-pool.lua to read many servers by one
-- command, and its traits. Whatever changes the hash goes through set_server, unset_server and delete_server, which
-- throw the card away.
local ServerHash = {}

-- What restrictions go by: `@<weight version>|<what its engine lacks>`, of which there are few in a pool, and
-- `<name>=<value>` of each label. For each trait there is a set of the servers that have it.
function ServerHash.traits_of(tx, id)
  local field = redis.call('HMGET', tx.key:server(id), 'weightVersion', 'lacks', 'labels')
  if not field[1] then return {} end
  local traits = {}
  for name, value in pairs(field[3] and cjson.decode(field[3]) or {}) do table.insert(traits, name .. '=' .. value) end
  table.sort(traits)
  table.insert(traits, 1, string.format('@%.0f|%s', tonumber(field[1]), field[2] or ''))
  return traits
end

function ServerHash.forget_traits(tx, id)
  for trait in string.gmatch(redis.call('HGET', tx.key.serverTraits, id) or '', '[^\n]+') do
    redis.call('SREM', tx.key:serversWith(trait), id)
    if redis.call('EXISTS', tx.key:serversWith(trait)) == 0 then redis.call('SREM', tx.key.serverBases, trait) end
  end
  redis.call('HDEL', tx.key.serverTraits, id)
end

function ServerHash.save_traits(tx, id)
  local traits = ServerHash.traits_of(tx, id)
  local text = table.concat(traits, '\n')
  if not traits[1] or redis.call('HGET', tx.key.serverTraits, id) == text then return end
  ServerHash.forget_traits(tx, id)
  redis.call('HSET', tx.key.serverTraits, id, text)
  redis.call('SADD', tx.key.serverBases, traits[1])
  for _, trait in ipairs(traits) do redis.call('SADD', tx.key:serversWith(trait), id) end
end

function ServerHash.set(tx, id, ...)
  redis.call('HSET', tx.key:server(id), ...)
  redis.call('HDEL', tx.key.serverCards, id)
  for position = 1, select('#', ...), 2 do
    local field = select(position, ...)
    if field == 'weightVersion' or field == 'lacks' or field == 'labels' then return ServerHash.save_traits(tx, id) end
  end
end

function ServerHash.unset(tx, id, ...)
  redis.call('HDEL', tx.key:server(id), ...)
  redis.call('HDEL', tx.key.serverCards, id)
end

function ServerHash.delete(tx, id)
  redis.call('DEL', tx.key:server(id))
  ServerHash.forget_traits(tx, id)
  redis.call('HDEL', tx.key.serverCards, id)
  redis.call('HDEL', tx.key.serverChosen, id)
end

-- A suspect that is held takes leases: most servers went silent together, which says more about us than about them.
-- The weight-version gate comes on top, see is_quarantined.
function ServerHash.takes_leases(server)
  if server.cordoned or server.drainUntilMs then return false end
  return server.state == 'ready' or (server.state == 'suspect' and server.held)
end

-- What a caller must know of a server.
function ServerHash.describe(server)
  return {
    epoch = server.epoch,
    endpoint = server.endpoint,
    dialect = server.dialect,
    model = server.model,
    weightVersion = server.weightVersion,
  }
end

-- The server as its hash has it, without its load; nil for an unknown one.
function ServerHash.read(tx, id)
  local field = redis.call('HMGET', tx.key:server(id), 'epoch', 'state', 'held', 'endpoint', 'dialect', 'model',
    'maxInflight', 'weight', 'weightVersion', 'instanceId', 'cordoned', 'drainUntilMs', 'startedAtMs', 'limit', 'probe')
  if not field[1] then return nil end
  return {
    id = id,
    epoch = field[1],
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
    probed = field[15] ~= '0',
  }
end

return ServerHash

-- What is stored of a server: its record (server-record.lua), which every choice reads, its hash with all the rest, and
-- its traits. Whatever changes a server goes through `change`, `set`, `unset` and `delete`.
local ServerHash = {}

-- What restrictions go by: `@<weight version>|<what its engine lacks>`, of which there are few in a pool, and
-- `<name>=<value>` of each label. For each trait there is a set of the servers that have it.
function ServerHash.traits_of(tx, id)
  local server = ServerHash.read(tx, id)
  if not server then return {} end
  local field, traits = redis.call('HMGET', tx.key:server(id), 'lacks', 'labels'), {}
  for name, value in pairs(field[2] and cjson.decode(field[2]) or {}) do table.insert(traits, name .. '=' .. value) end
  table.sort(traits)
  table.insert(traits, 1, string.format('@%.0f|%s', server.weightVersion, field[1] or ''))
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

-- `changes`: fields of the record by name; false for one that is there no more.
function ServerHash.change(tx, id, changes)
  local fields = ServerRecord.fields(redis.call('HGET', tx.key.serverRecords, id))
  for name, value in pairs(changes) do fields[name] = value or nil end
  local packed = ServerRecord.pack(id, fields)
  redis.call('HSET', tx.key.serverRecords, id, packed)
  local known = tx.known_servers[id]
  if known then known.record, known.textsAt = packed, ServerRecord.unpack(id, packed).textsAt end
  if changes.weightVersion then ServerHash.save_traits(tx, id) end
end

-- A field of the hash.
function ServerHash.set(tx, id, name, value)
  redis.call('HSET', tx.key:server(id), name, value)
  if name == 'lacks' or name == 'labels' then ServerHash.save_traits(tx, id) end
end

function ServerHash.unset(tx, id, ...) redis.call('HDEL', tx.key:server(id), ...) end

function ServerHash.delete(tx, id)
  redis.call('DEL', tx.key:server(id))
  redis.call('HDEL', tx.key.serverRecords, id)
  ServerHash.forget_traits(tx, id)
  redis.call('HDEL', tx.key.serverChosen, id)
end

-- A suspect that is held takes leases: most servers went silent together, which says more about us than about them.
-- The weight-version gate comes on top, see is_quarantined.
function ServerHash.takes_leases(server)
  if server.cordoned or server.drainUntilMs then return false end
  return server.state == 'ready' or (server.state == 'suspect' and server.held)
end

-- The server as its record has it, without its load; nil for an unknown one.
function ServerHash.read(tx, id)
  local packed = redis.call('HGET', tx.key.serverRecords, id)
  return packed and ServerRecord.unpack(id, packed) or nil
end

return ServerHash

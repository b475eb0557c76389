-- Stored data of a server: its record (server-record.lua), which every choice reads, its hash with all other fields,
-- and its index entries. All changes on which index entries depend use `change`, `set`, `unset` and `delete`.
local ServerHash = {}

-- Short name of a list of models in an index entry.
function ServerHash.digest_models(text) return string.sub(redis.sha1hex(text), 1, 8) end

-- Index entries of a server, by which restrictions find the server: `@<weight version>|<missing features>`, with
-- `|<digest>` if its models are known (a pool has few different lists of models); and `<name>=<value>` for each label.
-- Each index entry has a set of its servers.
function ServerHash.index_entries_of(tx, id)
  local server = ServerHash.read(tx, id)
  if not server then return {} end
  local field, index_entries = redis.call('HMGET', tx.key:server(id), 'lacks', 'labels', 'models'), {}
  for name, value in pairs(field[2] and cjson.decode(field[2]) or {}) do
    table.insert(index_entries, name .. '=' .. value)
  end
  table.sort(index_entries)
  local models = field[3] and '|' .. ServerHash.digest_models(field[3]) or ''
  table.insert(index_entries, 1, string.format('@%.0f|%s%s', server.weightVersion, field[1] or '', models))
  return index_entries
end

function ServerHash.remove_index_entries(tx, id)
  for index_entry in string.gmatch(redis.call('HGET', tx.key.serverIndexEntries, id) or '', '[^\n]+') do
    redis.call('SREM', tx.key:serversWith(index_entry), id)
    if redis.call('EXISTS', tx.key:serversWith(index_entry)) == 0 then
      redis.call('SREM', tx.key.serverVersionEntries, index_entry)
    end
  end
  redis.call('HDEL', tx.key.serverIndexEntries, id)
end

function ServerHash.save_index_entries(tx, id)
  local index_entries = ServerHash.index_entries_of(tx, id)
  local text = table.concat(index_entries, '\n')
  if not index_entries[1] or redis.call('HGET', tx.key.serverIndexEntries, id) == text then return end
  ServerHash.remove_index_entries(tx, id)
  redis.call('HSET', tx.key.serverIndexEntries, id, text)
  redis.call('SADD', tx.key.serverVersionEntries, index_entries[1])
  for _, index_entry in ipairs(index_entries) do redis.call('SADD', tx.key:serversWith(index_entry), id) end
end

-- Changes the record. `changes`: fields by name; false deletes a field.
function ServerHash.change(tx, id, changes)
  local fields = ServerRecord.fields(redis.call('HGET', tx.key.serverRecords, id))
  for name, value in pairs(changes) do fields[name] = value or nil end
  local packed = ServerRecord.pack(id, fields)
  redis.call('HSET', tx.key.serverRecords, id, packed)
  local known = tx.known_servers[id]
  if known then known.record = packed end
  if changes.weightVersion then ServerHash.save_index_entries(tx, id) end
end

function ServerHash.set(tx, id, name, value)
  redis.call('HSET', tx.key:server(id), name, value)
  if name == 'lacks' or name == 'labels' or name == 'models' then ServerHash.save_index_entries(tx, id) end
end

function ServerHash.unset(tx, id, ...) redis.call('HDEL', tx.key:server(id), ...) end

function ServerHash.delete(tx, id)
  redis.call('DEL', tx.key:server(id))
  redis.call('HDEL', tx.key.serverRecords, id)
  FailingServers.forget(tx, id)
  ServerHash.remove_index_entries(tx, id)
  redis.call('HDEL', tx.key.serverChosen, id)
  redis.call('HDEL', tx.key.serverKv, '=' .. id)
end

-- Whether the server takes leases, apart from the weight-version gate (is_quarantined in servers.lua). A suspect server
-- that is held takes leases: most servers went silent together, so the cause is not the server.
function ServerHash.takes_leases(server)
  if server.cordoned or server.withheld or server.drainUntilMs then return false end
  return server.state == 'ready' or (server.state == 'suspect' and server.held)
end

-- True while the breaker gives the server no new leases: until the end of its pause, and while the one call that is to
-- end its silence has got no token. The server must have been read with its load.
function ServerHash.is_paused(tx, server)
  local trouble = server.trouble
  if not trouble then return false end
  return trouble.untilMs > tx.now or (trouble.isSilent and not trouble.isUntried and server.load > 0) or false
end

-- The server as its record has it, without its load; nil for an unknown server.
function ServerHash.read(tx, id)
  local packed = redis.call('HGET', tx.key.serverRecords, id)
  return packed and ServerRecord.unpack(id, packed) or nil
end

return ServerHash

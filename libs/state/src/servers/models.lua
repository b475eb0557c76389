-- Models and adapters that engines list. The list of a server is one text of its hash (names, one a line); the pool
-- counts the servers of each list, so that a pool in which all lists are equal needs no choice by model.
local Models = {}

Models.ANY = '*' -- in a list: the engine has more names than are stored

local function parse(text)
  local is_listed = {}
  for name in string.gmatch(text, '[^\n]+') do is_listed[name] = true end
  return is_listed
end

-- tx.model_lists -- {by_text: list -> names, by_digest, count: different lists, is_partial: some server has no list}
function Tx.fields.model_lists(tx)
  local lists, listing = { by_text = {}, by_digest = {}, count = 0 }, 0
  local flat = redis.call('HGETALL', tx.key.modelLists)
  for index = 1, #flat, 2 do
    local names = parse(flat[index])
    lists.by_text[flat[index]], lists.by_digest[ServerHash.digest_models(flat[index])] = names, names
    lists.count, listing = lists.count + 1, listing + tonumber(flat[index + 1])
  end
  lists.is_partial = listing < redis.call('ZCARD', tx.key.servers)
  return lists
end

-- `names`: false for an unknown list, which may have any model. SGLang names an adapter `<model>:<adapter>`.
function Models.has(names, model)
  if not names then return true end
  local adapter = string.match(model, '^[^:]*:(.+)$')
  return names[model] or names[Models.ANY] or (adapter ~= nil and names[adapter]) or false
end

function Models.are_listed(tx, server, model)
  if server.models == nil then
    local text = redis.call('HGET', tx.key:server(server.id), 'models')
    server.models = text and (tx.model_lists.by_text[text] or parse(text))
  end
  return Models.has(server.models, model)
end

-- The constraint of a requested model on the choice: 'nothing' while all lists are equal, since then the engine
-- decides; 'model' when some server may have the model; 'unknown' when no server of the pool lists it.
function Models.constraint(tx, model)
  local lists = tx.model_lists
  if lists.count == 0 or (lists.count == 1 and not lists.is_partial) then return 'nothing' end
  if lists.is_partial then return 'model' end
  for _, names in pairs(lists.by_text) do
    if Models.has(names, model) then return 'model' end
  end
  return 'unknown'
end

-- The names of a list, in its order.
function Models.names(text)
  local names = {}
  for name in string.gmatch(text, '[^\n]+') do table.insert(names, name) end
  return names
end

-- `text`: the names, one a line; empty when they are not known.
function Models.set(tx, id, text)
  local before = redis.call('HGET', tx.key:server(id), 'models')
  if text == (before or '') then return end
  if before and redis.call('HINCRBY', tx.key.modelLists, before, -1) <= 0 then
    redis.call('HDEL', tx.key.modelLists, before)
  end
  tx.model_lists = nil
  if text == '' then
    ServerHash.unset(tx, id, 'models')
    ServerHash.save_index_entries(tx, id)
  else
    redis.call('HINCRBY', tx.key.modelLists, text, 1)
    ServerHash.set(tx, id, 'models', text)
  end
  local known = tx.known_servers[id]
  if known then known.models = nil end
end

return Models

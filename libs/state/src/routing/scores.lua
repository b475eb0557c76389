-- Places of servers in the order of the pool's policy, `tx.policy`. A policy is a table in routing/policies:
--   score(tx, server)            load of a server, a whole number: the server with the least load is chosen
--   unit?                        room beside the load for the sequence of the last choice, LOAD_UNIT by default
--   candidates?(tx, item)        chooses a server or nil for an acquire, instead of the first server of the order
--   branch?                      branch in the receipt of a free choice, instead of whether there was a tie
--   on_grant?(tx, server, reached)   called when a lease was granted on the server
--   on_move?(tx, server)         called when the server is placed in the order
--   on_forget?(tx, server)       called when the server is removed from the pool, whatever the policy in force
--   goes_by?                     'sessions', 'tokens' or 'kv': a count that moves servers, besides leases
--   explain?(tx, server)         name and value of the input of the score, for full receipts
-- Each place is an exact integer below 2^53: load * unit + sequence of the last choice. libs/policies/src/routing has
-- the same policies in TypeScript.
local Scores = {}

-- True when the policy in force or the next policy goes by `what`: 'sessions', 'tokens' or 'kv'.
function Scores.go_by(tx, what)
  return tx.policy.goes_by == what or (tx.next_policy and tx.next_policy.goes_by == what)
end

-- The sequence of the choice by which a server was chosen last.
function Scores.chosen(tx, server)
  if not server.chosen then server.chosen = tonumber(redis.call('HGET', tx.key.serverChosen, server.id) or nil) or 0 end
  return server.chosen
end

-- Reads the sequences of many servers with one call.
function Scores.read_chosen(tx, servers)
  local unknown, ids = {}, {}
  for _, server in ipairs(servers) do
    if not server.chosen then unknown[#unknown + 1], ids[#ids + 1] = server, server.id end
  end
  if not unknown[2] then return end
  for position, chosen in ipairs(redis.call('HMGET', tx.key.serverChosen, unpack(ids))) do
    unknown[position].chosen = tonumber(chosen or nil) or 0
  end
end

-- Place by load; among servers of equal load, the server chosen longest ago is first.
function Scores.place_of(tx, server, policy)
  local unit = policy.unit or Loads.LOAD_UNIT
  return policy.score(tx, server) * unit + (server.chosen or Scores.chosen(tx, server)) % unit
end

-- Orders of the servers that fit a restriction, see narrow.lua: restriction -> zset.
function Tx.fields.narrowed_orders() return {} end

-- Discards the orders after servers have moved, unless a choice has moved them.
function Scores.forget_order(tx)
  tx.order = nil
  if not rawget(tx, 'narrowed_orders') then return end
  for _, narrowed in pairs(tx.narrowed_orders) do redis.call('UNLINK', narrowed) end
  tx.narrowed_orders = nil
end

-- Writes the places of these servers, for the policy in force and for the policy that is about to take over. `place` of
-- a server is its place, if it is known already.
function Scores.place(tx, servers)
  if not servers[1] then return end
  if servers[2] then Scores.read_chosen(tx, servers) end
  local policy, coming = tx.policy, tx.next_policy
  local scores, coming_scores = {}, coming and {}
  for index, server in ipairs(servers) do
    scores[2 * index - 1], scores[2 * index] = server.place or Scores.place_of(tx, server, policy), server.id
    if policy.on_move then policy.on_move(tx, server) end
    if coming then
      coming_scores[2 * index - 1] = Scores.place_of(tx, server, coming)
      coming_scores[2 * index] = server.id
      if coming.on_move then coming.on_move(tx, server) end
    end
  end
  redis.call('ZADD', tx.key.eligible, unpack(scores))
  if coming then redis.call('ZADD', tx.key.nextEligible, unpack(coming_scores)) end
end

function Scores.withdraw(tx, server_id)
  tx.order = nil
  redis.call('ZREM', tx.key.eligible, server_id)
  for _, narrowed in pairs(rawget(tx, 'narrowed_orders') or {}) do redis.call('ZREM', narrowed, server_id) end
  if tx.next_policy then redis.call('ZREM', tx.key.nextEligible, server_id) end
end

-- Adds a server that takes leases to the index of weight versions, or removes another server. The index gives the
-- newest version.
function Scores.place_version(tx, server, takes_leases)
  if takes_leases then
    redis.call('ZADD', tx.key.serverVersions, Format.integer(server.weightVersion), server.id)
  else
    redis.call('ZREM', tx.key.serverVersions, server.id)
  end
end

-- A removed server leaves every order. With the last server, the decisions and the hash of the last choices are
-- removed.
function Scores.forget(tx, server)
  Scores.withdraw(tx, server.id)
  Scores.place_version(tx, server, false)
  for _, policy in pairs(tx.policies) do
    if policy.on_forget then policy.on_forget(tx, server) end
  end
  if redis.call('ZCARD', tx.key.servers) == 0 then
    redis.call('UNLINK', tx.key.decisions, tx.key.fullDecisions, tx.key.serverChosen)
  end
end

return Scores

-- How much a server has to do, in the unit of the pool's policy: its place in the order of the eligible ones.
-- Each score is an exact integer below 2^53.
local Scores = {}

local TURN = 4096 -- a turn of a server of weight 1
-- Room beside a turn for the last choice. Exact for 2^25 turns of each server; then, little by little, equal turns go
-- by id.
local TURN_UNIT = 65536
local POINTS_PER_WEIGHT, MOST_POINTS = 64, 1024 -- of one server on the ring

-- The eligible servers as order.lua keeps them; nil = to be read anew.
-- Of those that fit a restriction, see narrow.lua: restriction -> zset.
function Tx.fields.narrowed_orders() return {} end

-- Something else than a choice has moved servers.
function Scores.forget_order(tx)
  tx.order = nil
  for _, narrowed in pairs(tx.narrowed_orders) do redis.call('UNLINK', narrowed) end
  tx.narrowed_orders = {}
end

function Scores.policy(tx) return Settings.get(tx, 'policy') or 'least-inflight' end

local function counted(hash, changes, server)
  local name = Loads.count_name(server.id, server.epoch)
  return (tonumber(redis.call('HGET', hash, name) or nil) or 0) + (changes[name] or 0)
end

-- Tokens of its leases, and those it reported as not yet prefilled.
function Scores.tokens_of(tx, server)
  local uncached = tonumber(redis.call('HGET', tx.key:server(server.id), 'loadUncachedTokens') or nil) or 0
  return server.load * Loads.TOKENS_PER_LOAD + counted(tx.key.serverTokens, tx.token_changes, server) + uncached
end

-- Sessions bound to it; a lease without a session counts as one of a single turn. Only sessions are written down: one
-- that is bound counts 1, each of its leases -1.
function Scores.sessions_of(tx, server) return server.load + counted(tx.key.serverSessions, tx.session_changes,
  server) end

-- Round robin by turns: each lease moves a server's turn on by 1 / weight. One that was away, or is new, begins at the
-- turn that the others have reached.
local function turn_reached(tx)
  tx.virtual_turn = tx.virtual_turn or tonumber(redis.call('HGET', tx.key.meta, 'virtualTurn') or nil) or 0
  return tx.virtual_turn
end

function Scores.turn_of(tx, server)
  if server.turn == nil then server.turn = tonumber(redis.call('HGET', tx.key:server(server.id), 'turn') or nil)
    or 0 end
  return math.max(server.turn, turn_reached(tx))
end

-- Turns of other policies do not count: they are not moved.
function Scores.take_turn(tx, server, reached)
  if reached and reached > turn_reached(tx) then
    tx.virtual_turn = reached
    redis.call('HSET', tx.key.meta, 'virtualTurn', Format.integer(reached))
  end
  server.turn = Scores.turn_of(tx, server) + math.max(1, math.floor(TURN / server.weight + 0.5))
  redis.call('HSET', tx.key:server(server.id), 'turn', Format.integer(server.turn))
end

-- The load of a server: what the policy's order goes by, before the tie is broken.
function Scores.load_of(tx, server, policy)
  if policy == 'least-tokens' then
    return Loads.weighed(Scores.tokens_of(tx, server) / Loads.TOKENS_PER_LOAD, server)
  end
  if policy == 'least-sessions' then return Loads.weighed(Scores.sessions_of(tx, server), server) end
  if policy == 'round-robin' then return Scores.turn_of(tx, server) end
  return Loads.weighed(server.load, server)
end

-- By load, among equals the one chosen longest ago.
function Scores.score_of(tx, server, policy)
  local unit = policy == 'round-robin' and TURN_UNIT or Loads.LOAD_UNIT
  return Scores.load_of(tx, server, policy) * unit + server.chosen % unit
end

-- The load a score was made of.
function Scores.load_in_score(score, policy)
  return math.floor(score / (policy == 'round-robin' and TURN_UNIT or Loads.LOAD_UNIT))
end

function Scores.points_of(weight)
  return math.min(MOST_POINTS, math.max(1, math.floor(POINTS_PER_WEIGHT * weight + 0.5)))
end

-- The first 52 bits of SHA-1: exact as a score.
function Scores.hash_of(text) return tonumber(string.sub(redis.sha1hex(text), 1, 13), 16) end

local function point_name(server_id, index) return string.format('%s#%.0f', server_id, index) end

-- Puts the points of a server on the ring, or corrects their number. `ring` of the server remembers them, with the
-- generation of the ring, which is new each time the policy is chosen.
local function place_on_ring(tx, server)
  local generation = Settings.get(tx, 'ringGeneration') or '0'
  local points = Scores.points_of(server.weight)
  local wanted = string.format('%s:%.0f', generation, points)
  local placed = redis.call('HGET', tx.key:server(server.id), 'ring')
  if placed == wanted then return end
  local before = placed and string.match(placed, '^' .. generation .. ':(%d+)$')
  for index = points, tonumber(before or 0) - 1 do redis.call('ZREM', tx.key.ring, point_name(server.id, index)) end
  for index = 0, points - 1 do
    local name = point_name(server.id, index)
    redis.call('ZADD', tx.key.ring, Format.integer(Scores.hash_of(name)), name)
  end
  redis.call('HSET', tx.key:server(server.id), 'ring', wanted)
end

-- Where these servers stand now, for the policy in force and for the one that is about to take over.
function Scores.place(tx, servers)
  if #servers == 0 then return end
  local policy, coming = Scores.policy(tx), Settings.get(tx, 'nextPolicy')
  local scores, coming_scores = {}, {}
  for _, server in ipairs(servers) do
    scores[#scores + 1] = Format.integer(Scores.score_of(tx, server, policy))
    scores[#scores + 1] = server.id
    if coming then
      coming_scores[#coming_scores + 1] = Format.integer(Scores.score_of(tx, server, coming))
      coming_scores[#coming_scores + 1] = server.id
    end
    if policy == 'consistent-hash' or coming == 'consistent-hash' then place_on_ring(tx, server) end
  end
  redis.call('ZADD', tx.key.eligible, unpack(scores))
  if coming then redis.call('ZADD', tx.key.nextEligible, unpack(coming_scores)) end
end

function Scores.withdraw(tx, server_id)
  tx.order = nil
  redis.call('ZREM', tx.key.eligible, server_id)
  for _, narrowed in pairs(tx.narrowed_orders) do redis.call('ZREM', narrowed, server_id) end
  if Settings.get(tx, 'nextPolicy') then redis.call('ZREM', tx.key.nextEligible, server_id) end
end

-- The server takes leases (or takes none any more): for the newest weight version of the pool.
function Scores.place_version(tx, server, takes_leases)
  if takes_leases then
    redis.call('ZADD', tx.key.serverVersions, Format.integer(server.weightVersion), server.id)
  else
    redis.call('ZREM', tx.key.serverVersions, server.id)
  end
end

-- A removed server leaves every order; with the last one the decisions go, which were all about servers that are gone.
function Scores.forget(tx, server)
  Scores.withdraw(tx, server.id)
  Scores.place_version(tx, server, false)
  if redis.call('EXISTS', tx.key.ring) == 1 then
    for index = 0, Scores.points_of(server.weight) - 1 do redis.call('ZREM', tx.key.ring, point_name(server.id,
      index)) end
  end
  if redis.call('ZCARD', tx.key.servers) == 0 then redis.call('UNLINK', tx.key.decisions, tx.key.fullDecisions) end
end

return Scores

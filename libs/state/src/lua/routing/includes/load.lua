--- @include "../../includes/keys"
--- @include "settings"
--- @include "counts"
-- How much a server has to do, in the unit of the pool's policy: its place in the order of the eligible ones.
-- Each score is an exact integer below 2^53.
local TURN = 4096 -- a turn of a server of weight 1
-- Room beside a turn for the last choice. Exact for 2^25 turns of each server; then, little by little, equal turns go by id.
local TURN_UNIT = 65536
local POINTS_PER_WEIGHT, MOST_POINTS = 64, 1024 -- of one server on the ring

-- The eligible servers as order.lua keeps them; nil = to be read anew.
local order
-- Of those that fit a restriction, see narrow.lua: restriction -> zset.
local narrowed_orders = {}

-- Something else than a choice has moved servers.
local function forget_order()
  order = nil
  for _, narrowed in pairs(narrowed_orders) do redis.call('UNLINK', narrowed) end
  narrowed_orders = {}
end

local function policy_in_force() return setting('policy') or 'least-inflight' end

local function counted(hash, changes, server)
  local name = count_name(server.id, server.epoch)
  return (tonumber(redis.call('HGET', hash, name) or nil) or 0) + (changes[name] or 0)
end

-- Tokens of its leases, and those it reported as not yet prefilled.
local function tokens_of(server)
  local uncached = tonumber(redis.call('HGET', key.server(server.id), 'loadUncachedTokens') or nil) or 0
  return server.load * TOKENS_PER_LOAD + counted(key.serverTokens, token_changes, server) + uncached
end

-- Sessions bound to it; a lease without a session counts as one of a single turn. Only sessions are written down: one
-- that is bound counts 1, each of its leases -1.
local function sessions_of(server) return server.load + counted(key.serverSessions, session_changes, server) end

-- Round robin by turns: each lease moves a server's turn on by 1 / weight. One that was away, or is new, begins at the
-- turn that the others have reached.
local virtual_turn
local function turn_reached()
  virtual_turn = virtual_turn or tonumber(redis.call('HGET', key.meta, 'virtualTurn') or nil) or 0
  return virtual_turn
end

local function turn_of(server)
  if server.turn == nil then server.turn = tonumber(redis.call('HGET', key.server(server.id), 'turn') or nil) or 0 end
  return math.max(server.turn, turn_reached())
end

-- Turns of other policies do not count: they are not moved.
local function take_turn(server, reached)
  if reached and reached > turn_reached() then
    virtual_turn = reached
    redis.call('HSET', key.meta, 'virtualTurn', string.format('%.0f', reached))
  end
  server.turn = turn_of(server) + math.max(1, math.floor(TURN / server.weight + 0.5))
  redis.call('HSET', key.server(server.id), 'turn', string.format('%.0f', server.turn))
end

-- The load of a server: what the policy's order goes by, before the tie is broken.
local function policy_load(server, policy)
  if policy == 'least-tokens' then return weighed(tokens_of(server) / TOKENS_PER_LOAD, server) end
  if policy == 'least-sessions' then return weighed(sessions_of(server), server) end
  if policy == 'round-robin' then return turn_of(server) end
  return weighed(server.load, server)
end

-- By load, among equals the one chosen longest ago.
local function score_of(server, policy)
  local unit = policy == 'round-robin' and TURN_UNIT or LOAD_UNIT
  return policy_load(server, policy) * unit + server.chosen % unit
end

-- The load a score was made of.
local function load_in_score(score, policy)
  return math.floor(score / (policy == 'round-robin' and TURN_UNIT or LOAD_UNIT))
end

local function points_of(weight)
  return math.min(MOST_POINTS, math.max(1, math.floor(POINTS_PER_WEIGHT * weight + 0.5)))
end

-- The first 52 bits of SHA-1: exact as a score.
local function hash_of(text) return tonumber(string.sub(redis.sha1hex(text), 1, 13), 16) end

local function point_name(server_id, index) return string.format('%s#%.0f', server_id, index) end

-- Puts the points of a server on the ring, or corrects their number. `ring` of the server remembers them, with the
-- generation of the ring, which is new each time the policy is chosen.
local function place_on_ring(server)
  local generation = setting('ringGeneration') or '0'
  local points = points_of(server.weight)
  local wanted = string.format('%s:%.0f', generation, points)
  local placed = redis.call('HGET', key.server(server.id), 'ring')
  if placed == wanted then return end
  local before = placed and string.match(placed, '^' .. generation .. ':(%d+)$')
  for index = points, tonumber(before or 0) - 1 do redis.call('ZREM', key.ring, point_name(server.id, index)) end
  for index = 0, points - 1 do
    local name = point_name(server.id, index)
    redis.call('ZADD', key.ring, string.format('%.0f', hash_of(name)), name)
  end
  redis.call('HSET', key.server(server.id), 'ring', wanted)
end

-- Where these servers stand now, for the policy in force and for the one that is about to take over.
local function place_scores(servers)
  if #servers == 0 then return end
  local policy, coming = policy_in_force(), setting('nextPolicy')
  local scores, coming_scores = {}, {}
  for _, server in ipairs(servers) do
    scores[#scores + 1] = string.format('%.0f', score_of(server, policy))
    scores[#scores + 1] = server.id
    if coming then
      coming_scores[#coming_scores + 1] = string.format('%.0f', score_of(server, coming))
      coming_scores[#coming_scores + 1] = server.id
    end
    if policy == 'consistent-hash' or coming == 'consistent-hash' then place_on_ring(server) end
  end
  redis.call('ZADD', key.eligible, unpack(scores))
  if coming then redis.call('ZADD', key.nextEligible, unpack(coming_scores)) end
end

local function withdraw_score(server_id)
  order = nil
  redis.call('ZREM', key.eligible, server_id)
  for _, narrowed in pairs(narrowed_orders) do redis.call('ZREM', narrowed, server_id) end
  if setting('nextPolicy') then redis.call('ZREM', key.nextEligible, server_id) end
end

-- The server takes leases (or takes none any more): for the newest weight version of the pool.
local function place_version(server, takes_leases)
  if takes_leases then
    redis.call('ZADD', key.serverVersions, string.format('%.0f', server.weightVersion), server.id)
  else
    redis.call('ZREM', key.serverVersions, server.id)
  end
end

-- A removed server leaves every order; with the last one the decisions go, which were all about servers that are gone.
local function forget_place(server)
  withdraw_score(server.id)
  place_version(server, false)
  if redis.call('EXISTS', key.ring) == 1 then
    for index = 0, points_of(server.weight) - 1 do redis.call('ZREM', key.ring, point_name(server.id, index)) end
  end
  if redis.call('ZCARD', key.servers) == 0 then redis.call('UNLINK', key.decisions, key.fullDecisions) end
end

-- Chooses by turns: each lease moves a server's turn on by 1 / weight. A server that was away, or is new, starts at the
-- turn that the other servers have reached.
local RoundRobin = { branch = 'round-robin' }

local TURN = 4096 -- a turn of a server of weight 1
-- Room beside a turn for the last choice. Turns are exact for 2^25 turns of each server; beyond that, more and more
-- equal turns go by id.
RoundRobin.unit = 65536

local function turn_reached(tx)
  tx.virtual_turn = tx.virtual_turn or tonumber(redis.call('HGET', tx.key.meta, 'virtualTurn') or nil) or 0
  return tx.virtual_turn
end

function RoundRobin.score(tx, server)
  if server.turn == nil then server.turn = tonumber(redis.call('HGET', tx.key:server(server.id), 'turn') or nil)
    or 0 end
  return math.max(server.turn, turn_reached(tx))
end

-- Moves the turn of the server on; leases under other policies do not move turns. `reached`: the lowest turn of all
-- servers with room.
function RoundRobin.on_grant(tx, server, reached)
  if reached and reached > turn_reached(tx) then
    tx.virtual_turn = reached
    redis.call('HSET', tx.key.meta, 'virtualTurn', Format.integer(reached))
  end
  server.turn = RoundRobin.score(tx, server) + math.max(1, math.floor(TURN / server.weight + 0.5))
  redis.call('HSET', tx.key:server(server.id), 'turn', Format.integer(server.turn))
end

function RoundRobin.explain(tx, server) return 'turn', RoundRobin.score(tx, server) end

return RoundRobin

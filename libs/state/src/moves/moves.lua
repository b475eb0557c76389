-- A move: the intent stands in the request (movePlan, bound to the target) before its holder is told. What ends the
-- attempt ends the move too, whoever does it: pending again, and bound, it has moved; else something else has won.
local Moves = {}

local MOVE_ENDS = { pending = 'moved', finished = 'completed-first', running = 'expired' }

-- A state outlives the answer of its plan by nothing.
function Moves.note(tx, plan_id, id, state)
  if redis.call('EXISTS', tx.key:plan(plan_id)) == 1 then redis.call('HSET', tx.key:planStates(plan_id), id, state) end
end

function Moves.unbind(tx, request)
  redis.call('HDEL', tx.key:request(request.id), 'boundServerId', 'boundServerEpoch')
end

function Moves.finish(tx, request, to)
  redis.call('HDEL', tx.key:request(request.id), 'movePlan')
  redis.call('ZREM', tx.key.movingRequests, request.id)
  if to ~= 'pending' then Moves.unbind(tx, request) end
  Moves.note(tx, request.movePlan, request.id, MOVE_ENDS[to] or 'superseded')
  request.movePlan = nil
end

return Moves

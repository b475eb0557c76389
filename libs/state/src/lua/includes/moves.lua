--- @include "keys"
-- A move: the intent stands in the request (movePlan, bound to the target) before its holder is told. What ends the attempt
-- ends the move too, whoever does it: pending again, and bound, it has moved; else something else has won.
local MOVE_ENDS = { pending = 'moved', finished = 'completed-first', running = 'expired' }

-- A state outlives the answer of its plan by nothing.
local function note_move(plan_id, id, state)
  if redis.call('EXISTS', key.plan(plan_id)) == 1 then redis.call('HSET', key.planStates(plan_id), id, state) end
end

local function unbind(request)
  redis.call('HDEL', key.request(request.id), 'boundServerId', 'boundServerEpoch')
end

local function end_move(request, to)
  redis.call('HDEL', key.request(request.id), 'movePlan')
  redis.call('ZREM', key.movingRequests, request.id)
  if to ~= 'pending' then unbind(request) end
  note_move(request.movePlan, request.id, MOVE_ENDS[to] or 'superseded')
  request.movePlan = nil
end

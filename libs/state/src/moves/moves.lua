-- Moves. The intent of a move is stored in the request (movePlan, bound to the target) before the holder is asked to
-- stop. The end of the attempt ends the move: if the request is then pending and bound, it has moved; otherwise another
-- end came first.
local Moves = {}

local MOVE_ENDS = { pending = 'moved', finished = 'completed-first', running = 'expired' }

-- A lease whose holder was asked to transfer it is stored as planId|serverId|epoch or nothing|start, ms.
function Moves.pack_transfer(move)
  return table.concat({ move.planId, move.targetServerId, move.targetEpoch or '', Format.integer(move.startedAtMs) },
    '|')
end

function Moves.unpack_transfer(packed)
  local plan_id, target, epoch, started_at = string.match(packed, '^([^|]*)|([^|]*)|(%w*)|(%d+)$')
  return { planId = plan_id, targetServerId = target, targetEpoch = epoch ~= '' and epoch or nil,
    startedAtMs = tonumber(started_at) }
end

-- The transfer command for the holder of a lease.
function Moves.transfer(lease_id, lease, move)
  return { planId = move.planId, leaseId = lease_id, workerId = lease.workerId, workerEpoch = lease.workerEpoch,
    targetServerId = move.targetServerId, targetEpoch = move.targetEpoch }
end

function Moves.no_plan(plan_id)
  return Reply.fail('PLAN_NOT_FOUND', 'There is no plan ' .. plan_id .. ', or it has expired', 'planId')
end

-- Notes the state of a move for as long as its plan is kept.
function Moves.note(tx, plan_id, id, state)
  if redis.call('EXISTS', tx.key:plan(plan_id)) == 1 then redis.call('HSET', tx.key:planStates(plan_id), id, state) end
end

-- Notes the times of a move once its first token is known: until the end of the old attempt (stop), the claim of the
-- new attempt (place), its lease (resume) and its first token. `run`: measurements by the worker of the new attempt.
function Moves.note_times(tx, request, run)
  if not request.movedBy or not run or not run.firstTokenMs then return end
  Request.read_moves(tx, Request.read_times(tx, request))
  local sent, claimed = request.movedAtMs or tx.now, request.claimedAtMs or tx.now
  local stopped = math.max(sent, request.queuedAtMs or 0)
  local times = { stopMs = stopped - sent, placeMs = math.max(0, claimed - stopped), resumeMs = run.leasedMs,
    firstTokenMs = math.max(0, run.firstTokenMs - run.leasedMs) }
  Moves.note(tx, request.movedBy, request.id, 'moved:' .. cjson.encode(times))
  request.moveTimes = times
  Moves.forget_times(tx, request)
end

function Moves.forget_times(tx, request) Request.set(tx, request, { movedBy = false }) end

-- Notes the times of the request's last move at the end of the attempt: if they are unknown now, they stay unknown.
function Moves.end_times(tx, request)
  Moves.note_times(tx, request, request.run)
  if request.movedBy then Moves.forget_times(tx, request) end
end

function Moves.unbind(tx, request)
  Request.set(tx, request, { boundServerId = false, boundServerEpoch = false })
end

function Moves.finish(tx, request, to)
  local plan_id = request.movePlan
  Request.set(tx, request, { movePlan = false, movedBy = to == 'pending' and plan_id or nil })
  redis.call('ZREM', tx.key.movingRequests, request.id)
  if to ~= 'pending' then Moves.unbind(tx, request) end
  Moves.note(tx, plan_id, request.id, MOVE_ENDS[to] or 'superseded')
end

return Moves

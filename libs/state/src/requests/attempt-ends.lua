-- The times of an attempt that ends, for its event. The timeline of a round is built from these events.
local AttemptEnds = {}

-- Reason of an end without a sample. `request` still has its state from before the end.
local function outcome_of(request, to)
  if to == 'pending' then
    if request.state ~= 'cutting' then return 'returned' end
    return request.movePlan and 'moved' or 'stopped'
  end
  return to == 'unfinished' and 'cut' or to
end

-- Fields of the event. `request.run`: measurements by the worker, absent when the worker has expired.
function AttemptEnds.fields(tx, request, group)
  Request.read_times(tx, request)
  return {
    requestId = request.id, roundId = group.roundId, attempt = request.attempt, queuedAtMs = request.queuedAtMs,
    claimedAtMs = request.claimedAtMs, serverId = request.started and request.serverId or nil,
    attemptTokens = request.attemptTokens or 0, run = request.run,
  }
end

-- Adds the event of an attempt that ends without a sample. A group that Redis has lost has no round to name.
function AttemptEnds.add(tx, request, group, to)
  if not group.roundId then return end
  local fields = AttemptEnds.fields(tx, request, group)
  fields.outcome = outcome_of(request, to)
  Events.add(tx, 'attempt.ended', fields)
end

return AttemptEnds

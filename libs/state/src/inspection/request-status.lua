-- A request as lists show it.
local RequestStatus = {}

function RequestStatus.of(tx, request)
  local held = Request.HELD[request.state]
  if held then Request.read_times(tx, request) end
  return {
    requestId = request.id, state = request.state, attempt = request.attempt, failures = request.failures,
    tokenCount = request.tokens + (held and request.savedTokens or 0),
    workerId = held and request.workerId or nil, workerEpoch = held and request.workerEpoch or nil,
    ageMs = held and math.max(0, tx.now - (request.claimedAtMs or tx.now)) or nil,
    -- Until this attempt has started, the stored server is the server of an earlier attempt.
    serverId = held and request.started and request.serverId or nil, boundServerId = request.boundServerId,
  }
end

return RequestStatus

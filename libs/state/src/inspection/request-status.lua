-- A request as lists show it.
local RequestStatus = {}

function RequestStatus.of(tx, request)
  local held = Requests.HELD[request.state]
  local since = held and redis.call('HMGET', tx.key:request(request.id), 'claimedAtMs', 'serverId')
  return {
    requestId = request.id, state = request.state, attempt = request.attempt, failures = request.failures,
    tokenCount = request.tokens + (held and request.savedTokens or 0),
    workerId = held and request.workerId or nil, workerEpoch = held and request.workerEpoch or nil,
    ageMs = since and math.max(0, tx.now - tonumber(since[1] or tx.now)) or nil,
    -- That of an earlier attempt until this one has begun.
    serverId = held and request.started and since[2] or nil, boundServerId = request.boundServerId,
  }
end

return RequestStatus

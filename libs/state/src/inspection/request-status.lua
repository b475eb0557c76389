-- A request as lists show it.
local RequestStatus = {}

-- Mean tokens of the attempt in a second, until its last save; nil before the attempt has saved tokens.
local function compute_speed(request)
  local started_at, saved_at = request.startedAtMs, request.savedAtMs
  if not request.started or not started_at or not saved_at or saved_at <= started_at then return nil end
  return math.floor(request.savedTokens / (saved_at - started_at) * 10000 + 0.5) / 10
end

-- `group`: nil for a request whose group is not there.
function RequestStatus.of(tx, request, group)
  local held = Request.HELD[request.state]
  if held then
    Request.read_times(tx, request)
    Request.read_progress(tx, request)
  end
  local saved_at = held and request.savedAtMs
  return {
    requestId = request.id, state = request.state, attempt = request.attempt, failures = request.failures,
    tokenCount = request.tokens + (held and request.savedTokens or 0), maxTokens = group and group.maxTokens,
    workerId = held and request.workerId or nil, workerEpoch = held and request.workerEpoch or nil,
    ageMs = held and math.max(0, tx.now - (request.claimedAtMs or tx.now)) or nil,
    -- Until this attempt has started, the stored server is the server of an earlier attempt.
    serverId = held and request.started and request.serverId or nil, boundServerId = request.boundServerId,
    tokensPerSecond = held and compute_speed(request) or nil,
    tokensAgeMs = saved_at and math.max(0, tx.now - saved_at) or nil,
    waiting = held and request.started and request.waiting or nil,
  }
end

return RequestStatus

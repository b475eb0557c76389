-- Packed lease:
-- seq|serverId|serverEpoch|workerId|workerEpoch|requestId|sessionId|groupId|grantedAtMs|contextTokens|asked. No id
-- holds a |. `asked`: what the acquire restricted its server by, JSON; nothing for most.
local LeaseRecord = {}

function LeaseRecord.pack(lease)
  return string.format('%.0f|%s|%s|%s|%s|%s|%s|%s|%.0f|%s|%s', lease.seq, lease.serverId, lease.serverEpoch,
    lease.workerId, lease.workerEpoch, lease.requestId, lease.sessionId or '', lease.groupId or '', lease.grantedAtMs,
    lease.contextTokens and Format.integer(lease.contextTokens) or '', lease.asked or '')
end

function LeaseRecord.unpack(packed)
  local seq, server_id, server_epoch, worker_id, worker_epoch, request_id, session_id, group_id, granted_at,
    context_tokens, asked = string.match(packed,
      '^(%d+)|([^|]*)|(%w+)|([^|]*)|(%w+)|([^|]*)|([^|]*)|([^|]*)|(%d+)|?(%d*)|?(.*)$')
  return {
    seq = tonumber(seq),
    serverId = server_id,
    serverEpoch = server_epoch,
    workerId = worker_id,
    workerEpoch = worker_epoch,
    requestId = request_id,
    sessionId = session_id ~= '' and session_id or nil,
    groupId = group_id ~= '' and group_id or nil,
    grantedAtMs = tonumber(granted_at),
    contextTokens = tonumber(context_tokens),
    asked = asked ~= '' and asked or nil,
  }
end

return LeaseRecord

-- A lease as it is stored: seq|serverId|serverEpoch|workerId|workerEpoch|requestId|sessionId|groupId|grantedAtMs|
-- contextTokens|asked|attempt. No part holds a |. `asked`: the constraints of the acquire, JSON; empty for most. The
-- last part may be missing.
local LeaseRecord = {}

-- `holder`: the acquire or lease with the ids of worker, request, session and group. Numbers come as text: callers need
-- most of them as text elsewhere too.
function LeaseRecord.pack(seq_text, server, holder, granted_at_text, asked)
  return seq_text .. '|' .. server.id .. '|' .. server.epoch .. '|' .. holder.workerId .. '|' .. holder.workerEpoch
    .. '|'
    .. holder.requestId .. '|' .. (holder.sessionId or '') .. '|' .. (holder.groupId or '') .. '|' .. granted_at_text
    .. '|'
    .. (holder.contextTokens and Format.integer(holder.contextTokens) or '') .. '|' .. (asked or '')
    .. (holder.attempt and '|' .. holder.attempt or '')
end

-- The requestId of a packed lease: its sixth field.
function LeaseRecord.request_of(packed) return string.match(packed, '^%d+|[^|]*|%w+|[^|]*|%w+|([^|]*)') end

-- False for most leases that have this id in no field. Cheaper than `unpack`.
function LeaseRecord.may_name(packed, id) return string.find(packed, '|' .. id .. '|', 1, true) ~= nil end

function LeaseRecord.unpack(packed)
  local seq, server_id, server_epoch, worker_id, worker_epoch, request_id, session_id, group_id, granted_at,
    context_tokens, asked, attempt = string.match(packed,
      '^(%d+)|([^|]*)|(%w+)|([^|]*)|(%w+)|([^|]*)|([^|]*)|([^|]*)|(%d+)|?(%d*)|?([^|]*)|?([^|]*)')
  local lease = {
    seq = tonumber(seq),
    serverId = server_id,
    serverEpoch = server_epoch,
    workerId = worker_id,
    workerEpoch = worker_epoch,
    requestId = request_id,
    grantedAtMs = tonumber(granted_at),
  }
  -- Optional fields are set outside the constructor, which would reserve memory for them in every lease.
  if session_id ~= '' then lease.sessionId = session_id end
  if group_id ~= '' then lease.groupId = group_id end
  if context_tokens ~= '' then lease.contextTokens = tonumber(context_tokens) end
  if asked ~= '' then lease.asked = asked end
  if attempt ~= '' then lease.attempt = attempt end
  return lease
end

return LeaseRecord

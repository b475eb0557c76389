-- Aborts. An abort that takes a sample from a group drops the whole group, unless the abort is of the sample alone and
-- leaves enough other samples. A dropped group leaves its round or the long-tail queue at once. The group is `aborting`
-- as long as a worker has one of its requests, then `dropped`.
local Aborts = {}

-- Appends rows that an abort has selected, each once.
local function record_rows(tx, abort_id, rows)
  -- The record of an abort may have expired while a flag of the abort still applies.
  local left_ms = redis.call('PTTL', tx.key:abort(abort_id))
  if left_ms == -2 or #rows == 0 then return end
  local key, entries = tx.key:abortRows(abort_id), {}
  local last = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or 0)
  for position, row in ipairs(rows) do
    entries[2 * position - 1], entries[2 * position] = Format.integer(last + position), row
  end
  redis.call('ZADD', key, 'NX', unpack(entries))
  if left_ms >= 0 then redis.call('PEXPIRE', key, Format.integer(GroupEnds.kept_ms(tx))) end
end

-- A row is kind|id|requestId: `R` a request, `W` a request whose acquire waited, `N` an unknown request, `L` the lease
-- of a call of another requestId. Only `L` has a requestId.
local function pack_row(kind, id, request_id) return kind .. '|' .. id .. (request_id and '|' .. request_id or '') end
function Aborts.read_row(row)
  local kind, id, request_id = string.match(row, '^(%u)|([^|]+)|?(.*)$')
  return { kind = kind, id = id, requestId = request_id }
end

function Aborts.record(tx, abort_id, kind, id, request_id)
  record_rows(tx, abort_id, { pack_row(kind, id, request_id) })
end

function Aborts.record_group(tx, abort_id, group)
  local rows = {}
  for index = 0, group.launched - 1 do
    table.insert(rows, pack_row('R', Request.format_id(group.job, group.groupId, index)))
  end
  record_rows(tx, abort_id, rows)
end

-- Checks a group that is being aborted: stops its live requests, and ends the group when workers have none.
function Aborts.end_aborting(tx, round, group, aborts)
  GroupEnds.stop_live(tx, round, group, aborts, function(request)
    GroupEnds.drop_request(tx, group, request, nil, 0)
  end)
  GroupEnds.review_dropped(tx, group)
end

function Aborts.abort_group(tx, round, group, abort_id, aborts, request_id)
  local reason = round and round.cancelReason or redis.call('HGET', tx.key:abort(abort_id), 'reason') or 'abort'
  GroupEnds.drop_group(tx, round, group, reason, abort_id, aborts, request_id)
end

-- Handles a sample that its holder has ended at the timeout. The tokens of the sample are waste in any case.
function Aborts.time_out(tx, round, group, request, segment, tokens, aborts)
  Round.add_returned(tx, round, 'timeout')
  local why = { reason = 'timeout', hasEnded = true, segment = segment, tokens = tokens }
  local is_alone = Round.rules(tx, round).abortScope == 'sample'
  if is_alone and Longtail.stop_sample(tx, round, group, request, why, aborts) then return end
  Request.set(tx, request, { stopped = 'timeout' })
  GroupEnds.drop_request(tx, group, request, segment, tokens)
  GroupEnds.drop_group(tx, round, group, 'timeout', nil, aborts, request.id)
end

-- Aborts a group that is under a flag. Every script that changes a request calls `apply` first, so that the group is
-- aborted even before a page of the abort selects it. True when this call aborted the group and changed its requests.
function Aborts.apply(tx, round, group, aborts)
  if not round or group.arrival > round.abortedUpTo or not Group.may_be_aborted(group) then return false end
  Aborts.abort_group(tx, round, group, round.abortedBy, aborts)
  Aborts.record_group(tx, round.abortedBy, group)
  return true
end

-- `scope`: scope of the abort; nil: the scope of the round decides. A flag is applied first: without the sample the
-- group might become whole, and then the flag would not abort the group.
function Aborts.abort_request(tx, round, group, request, abort_id, scope, aborts)
  if Aborts.apply(tx, round, group, aborts) then return end
  local is_alone = (scope or round and Round.rules(tx, round).abortScope) == 'sample'
  if is_alone and Longtail.stop_sample(tx, round, group, request, { reason = 'aborted' }, aborts) then return end
  Aborts.abort_group(tx, round, group, abort_id, aborts, request.id)
end

return Aborts

-- Aborts. A group that loses a sample to an abort is dropped as a whole, unless the abort is of the sample alone and
-- enough others are left. It leaves its round or the long-tail queue at once; it is `aborting` as long as a worker has
-- one of its requests, then `dropped`.
local Aborts = {}

local DEFAULT_KEPT_MS = 600000

function Aborts.kept_ms(tx) return tonumber(redis.call('HGET', tx.key.meta, 'abortKeptMs') or DEFAULT_KEPT_MS) end

-- Rows that an abort has selected, each once, behind those that are there.
local function record_rows(tx, abort_id, rows)
  -- A flag outlives the answer of its abort.
  local left_ms = redis.call('PTTL', tx.key:abort(abort_id))
  if left_ms == -2 or #rows == 0 then return end
  local key, entries = tx.key:abortRows(abort_id), {}
  local last = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or 0)
  for position, row in ipairs(rows) do
    entries[2 * position - 1], entries[2 * position] = Format.integer(last + position), row
  end
  redis.call('ZADD', key, 'NX', unpack(entries))
  if left_ms >= 0 then redis.call('PEXPIRE', key, Format.integer(Aborts.kept_ms(tx))) end
end

-- A row is kind|id|requestId: `R` a request, `W` a request whose acquire waited, `N` an unknown request, `L` the
-- lease of a call of another requestId. Only an `L` has the last part.
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
    table.insert(rows, pack_row('R', Requests.id_of(group.job, group.groupId, index)))
  end
  record_rows(tx, abort_id, rows)
end

local MAY_BE_ABORTED = { live = true, leaving = true, unfinished = true }
function Aborts.may_be_aborted(group) return MAY_BE_ABORTED[group.state] or false end

-- Takes a group out of wherever it is.
local function take_out(tx, round, group)
  if group.state == 'live' then
    Rounds.leave(tx, round, group)
    Rounds.bump(tx, round, 'droppedGroups', 1)
    return Rounds.review_left(tx, round)
  end
  if group.state == 'leaving' then
    Counts.add_settling(tx, group.job, -1)
    return Longtail.forget_leaving(tx, round, group)
  end
  Longtail.leave(tx, group.job, group.groupId)
end

-- To be called after requests of an aborted group were dropped.
function Aborts.review_dropped(tx, group)
  if group.live > 0 then return end
  local name = group.job .. '/' .. group.groupId
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'dropped')
  redis.call('ZREM', tx.key.abortingGroups, name)
  redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now + Aborts.kept_ms(tx)), name)
  group.state = 'dropped'
end

-- One look at a group that is being aborted.
function Aborts.end_aborting(tx, round, group, aborts)
  Cancellation.stop_live(tx, round, group, aborts, function(request)
    Longtail.drop_request(tx, group, request, nil, 0)
  end)
  Aborts.review_dropped(tx, group)
end

-- `round` is that of the group; nil when its summary is no longer kept. `request_id`: the sample it is dropped for.
function Aborts.drop_group(tx, round, group, reason, abort_id, aborts, request_id)
  if not round and group.state ~= 'unfinished' then return Recovery.lose_group(tx, nil, group) end
  LostGroups.note(tx, group, 'dropped', { reason = reason, requestId = request_id })
  take_out(tx, round, group)
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'aborting', 'dropReason', reason)
  group.state = 'aborting'
  redis.call('HINCRBY', tx.key:job(group.job), 'droppedGroups', 1)
  redis.call('ZADD', tx.key.abortingGroups, Format.integer(tx.now), group.job .. '/' .. group.groupId)
  Events.add(tx, 'group.dropped', { job = group.job, groupId = group.groupId, roundId = group.roundId,
    abortId = abort_id, reason = reason })
  local function drop(request) Longtail.drop_request(tx, group, request, nil, 0) end
  for _, request in ipairs(Recovery.requests_of(tx, group)) do
    if request.state == 'finished' or request.state == 'unfinished' then drop(request)
    else Cancellation.stop(tx, request, group, aborts, drop) end
  end
  Aborts.review_dropped(tx, group)
end

function Aborts.abort_group(tx, round, group, abort_id, aborts, request_id)
  local reason = round and round.cancelReason or redis.call('HGET', tx.key:abort(abort_id), 'reason') or 'abort'
  Aborts.drop_group(tx, round, group, reason, abort_id, aborts, request_id)
end

-- The holder of a sample has ended it at the timeout of the sample. The tokens of the sample are waste in any case.
function Aborts.time_out(tx, round, group, request, segment, tokens, aborts)
  Rounds.bump(tx, round, 'returned.timeout', 1)
  local why = { reason = 'timeout', hasEnded = true, segment = segment, tokens = tokens }
  local is_alone = Rounds.rules(tx, round).abortScope == 'sample'
  if is_alone and Longtail.stop_sample(tx, round, group, request, why, aborts) then return end
  Longtail.mark_stopped(tx, request, 'timeout')
  Longtail.drop_request(tx, group, request, segment, tokens)
  Aborts.drop_group(tx, round, group, 'timeout', nil, aborts, request.id)
end

-- Every script that moves a request on calls this first, so that what a flag has aborted is aborted for all, whether
-- the pages of the abort have come to it or not. True when the group was aborted just now: its requests have changed.
function Aborts.apply(tx, round, group, aborts)
  if not round or group.arrival > round.abortedUpTo or not Aborts.may_be_aborted(group) then return false end
  Aborts.abort_group(tx, round, group, round.abortedBy, aborts)
  Aborts.record_group(tx, round.abortedBy, group)
  return true
end

-- `scope`: that of the abort, or nil: that of the round. A group without the sample may be whole, so a flag comes
-- first.
function Aborts.abort_request(tx, round, group, request, abort_id, scope, aborts)
  if Aborts.apply(tx, round, group, aborts) then return end
  local is_alone = (scope or round and Rounds.rules(tx, round).abortScope) == 'sample'
  if is_alone and Longtail.stop_sample(tx, round, group, request, { reason = 'aborted' }, aborts) then return end
  Aborts.abort_group(tx, round, group, abort_id, aborts, request.id)
end

return Aborts

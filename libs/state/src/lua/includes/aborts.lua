--- @include "clock"
--- @include "settling"
-- Aborts. A group that loses a sample to an abort is dropped as a whole, unless the abort is of the sample alone and
-- enough others are left. It leaves its round or the long-tail queue at once; it is `aborting` as long as a worker has one of its
-- requests, then `dropped`.
local DEFAULT_KEPT_MS = 600000

local function abort_kept_ms() return tonumber(redis.call('HGET', key.meta, 'abortKeptMs') or DEFAULT_KEPT_MS) end

-- One thing that an abort has selected, once; rows only ever come behind the others.
local function record_abort(abort_id, row)
  -- A flag outlives the answer of its abort.
  if redis.call('EXISTS', key.abort(abort_id)) == 0 then return end
  local rows = key.abortRows(abort_id)
  redis.call('ZADD', rows, 'NX', redis.call('ZCARD', rows), row)
  if redis.call('PTTL', key.abort(abort_id)) > 0 then redis.call('PEXPIRE', rows, integer(abort_kept_ms())) end
end

local function record_group(abort_id, group)
  for index = 0, group.launched - 1 do
    record_abort(abort_id, 'R|' .. request_id(group.job, group.groupId, index))
  end
end

local MAY_BE_ABORTED = { live = true, leaving = true, unfinished = true }
local function may_be_aborted(group) return MAY_BE_ABORTED[group.state] or false end

local function leave_dropped(round, group)
  leave_round(round, group)
  bump(round, 'droppedGroups', 1)
  if takes_results(round) then return review_round(round) end
  if round.cancelMode ~= 'drop' then count_settling(round.job, -1) end
  if round.live == 0 then mark_settled(round) end
end

-- Takes a group out of wherever it is.
local function take_out(round, group)
  if group.state == 'live' then return leave_dropped(round, group) end
  if group.state == 'leaving' then
    count_settling(group.job, -1)
    return forget_leaving(round, group)
  end
  leave_longtail(group.job, group.groupId)
end

-- To be called after requests of an aborted group were dropped.
local function review_dropped(group)
  if group.live > 0 then return end
  local name = group.job .. '/' .. group.groupId
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'dropped')
  redis.call('ZREM', key.abortingGroups, name)
  redis.call('ZADD', key.droppedGroups, integer(now_ms() + abort_kept_ms()), name)
  group.state = 'dropped'
end

-- One look at a group that is being aborted.
local function end_aborting(round, group, aborts)
  end_live_requests(group, aborts, function(request) drop_request(group, request, nil, 0) end)
  review_dropped(group)
end

-- `round` is that of the group; nil when its summary is no longer kept.
local function drop_group(round, group, reason, abort_id, aborts)
  take_out(round, group)
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'aborting', 'dropReason', reason)
  group.state = 'aborting'
  redis.call('HINCRBY', key.job(group.job), 'droppedGroups', 1)
  redis.call('ZADD', key.abortingGroups, integer(now_ms()), group.job .. '/' .. group.groupId)
  fact('group.dropped', { job = group.job, groupId = group.groupId, roundId = group.roundId, abortId = abort_id, reason = reason })
  for index = 0, group.launched - 1 do
    local request = load_request(request_id(group.job, group.groupId, index))
    if request.state == 'finished' or request.state == 'unfinished' then drop_request(group, request, nil, 0) end
  end
  end_aborting(round, group, aborts)
end

local function abort_group(round, group, abort_id, aborts)
  local reason = round and round.cancelReason or redis.call('HGET', key.abort(abort_id), 'reason') or 'abort'
  drop_group(round, group, reason, abort_id, aborts)
end

-- The holder of a sample has ended it: its own time is over. Its tokens are waste, whoever else goes with it.
local function time_out(round, group, request, segment, tokens, aborts)
  bump(round, 'returned.timeout', 1)
  local why = { reason = 'timeout', hasEnded = true, segment = segment, tokens = tokens }
  if round.abortScope == 'sample' and stop_sample(round, group, request, why, aborts) then return end
  mark_stopped(request, 'timeout')
  drop_request(group, request, segment, tokens)
  drop_group(round, group, 'timeout', nil, aborts)
end

-- Every script that moves a request on calls this first, so that what a flag has aborted is aborted for all, whether
-- the pages of the abort have come to it or not. True when the group was aborted just now: its requests have changed.
local function honour_abort(round, group, aborts)
  if not round or group.arrival > round.abortedUpTo or not may_be_aborted(group) then return false end
  abort_group(round, group, round.abortedBy, aborts)
  record_group(round.abortedBy, group)
  return true
end

-- `scope`: that of the abort, or nil: that of the round. A group without the sample may be whole, so a flag comes first.
local function abort_request(round, group, request, abort_id, scope, aborts)
  if honour_abort(round, group, aborts) then return end
  local is_alone = (scope or round and round.abortScope) == 'sample'
  if is_alone and stop_sample(round, group, request, { reason = 'aborted' }, aborts) then return end
  abort_group(round, group, abort_id, aborts)
end

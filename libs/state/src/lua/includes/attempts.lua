--- @include "lost"
-- Checks of what a worker says about an attempt.

-- A request that is not there: folded with its round, or never submitted.
local function gone(id)
  local job, group_id = string.match(id, '^([^/]+)/([^/]+)/%d+$')
  local may_be_folded = job and tonumber(redis.call('HGET', key.job(job), 'stepsTrained') or 0) > 0
    and redis.call('EXISTS', key.group(job, group_id)) == 0
  if may_be_folded then return fail('ROUND_CLOSED', 'The round of ' .. id .. ' is closed', 'requestId') end
  return fail('REQUEST_NOT_FOUND', 'There is no request ' .. id, 'requestId')
end

-- What every word about an attempt begins with: its request, group and round, or nil and the error to answer.
local function load_attempt(args)
  if not worker_is_current(args.workerId, args.workerEpoch) then
    return nil, fail(void_worker(args.workerId))
  end
  local request = load_request(args.requestId)
  if not request then return nil, gone(args.requestId) end
  if request.attempt ~= args.attempt or request.workerId ~= args.workerId or request.workerEpoch ~= args.workerEpoch then
    return nil, fail('FENCED', 'Another attempt has the request now', 'attempt')
  end
  local group, round = owners_of(request)
  if not group then
    -- Lost: what is left of its group was dropped just now.
    group = load_group(request.job, request.groupId)
    if not group then return nil, gone(request.id) end
    request = load_request(request.id)
  end
  if honour_abort(round, group, {}) then request = load_request(request.id) end
  return request, group, round
end

local function superseded() return fail('FENCED', 'The attempt has ended', 'attempt') end

-- The request is not wanted: it was stopped, or its group is aborted or whole. What its holder says confirms it.
local function is_ending(group, request) return request.stopped or group.state == 'aborting' or is_whole(group) end

local function end_unwanted(round, group, request, segment, tokens)
  if group.state ~= 'aborting' then return end_surplus(round, group, request, segment, tokens) end
  drop_request(group, request, segment, tokens)
  review_dropped(group)
end

-- The last reasons stand in the status of the round.
local FAILURES_KEPT = 5
local function note_failure(round, request, why)
  local hash = key.round(round.job, round.roundId)
  local failures = cjson.decode(redis.call('HGET', hash, 'lastFailures') or '[]')
  table.insert(failures, { requestId = request.id, reason = why.reason, message = why.message, atMs = now_ms() })
  if #failures > FAILURES_KEPT then table.remove(failures, 1) end
  redis.call('HSET', hash, 'lastFailures', cjson.encode(failures))
end

-- An attempt has come back unfinished in an open round: its request is pending again with its tokens, or has failed for
-- good. Each way back is counted and capped, but for a stop that was asked for (a move, new weights): whoever asks bounds it.
-- `why`: {reason, message?, isFailure?, isFinal?, segment?, tokens?}
local function put_back(round, group, request, aborts, why)
  if request.state ~= 'cutting' then
    bump(round, 'returned.' .. why.reason, 1)
    local count = redis.call('HINCRBY', key.request(request.id), why.isFailure and 'failures' or 'returns', 1)
    if (why.isFailure and why.isFinal) or count > (why.isFailure and round.maxFailures or round.maxReturns) then
      note_failure(round, request, why)
      return fail_request(round, group, request, aborts, why.segment, why.tokens or 0)
    end
  end
  keep_tokens(request, why.segment, why.tokens or 0)
  move_request(request, group, 'pending', true)
end

-- Gives back an attempt of a void worker epoch; no failure of the request. True when it is pending again.
local function return_attempt(request)
  local group, round = owners_of(request)
  if not group then return false end
  honour_abort(round, group, {})
  -- Dropped with its group, now or since the list of the holder was read.
  if group.state == 'dropped' or not HELD[redis.call('HGET', key.request(request.id), 'state')] then return false end
  if is_ending(group, request) then
    end_unwanted(round, group, request, nil, 0)
    return false
  end
  if is_cut(round, group) then
    cut_request(round, group, request, nil, 0)
    return false
  end
  put_back(round, group, request, {}, { reason = 'worker-lost' })
  return request.state == 'pending'
end

-- Checks of a call that ends or reports an attempt.
local Attempts = {}

-- Error for a request that is not there: folded with its round, or never submitted.
local function gone(tx, id)
  local job, group_id = Request.parse_id(id)
  local may_be_folded = job and Job.load(tx, job).stepsTrained > 0 and not Group.exists(tx, job, group_id)
  if may_be_folded then
    return Reply.fail('ROUND_CLOSED', 'There is no request ' .. id .. ': its round is closed, or it never was',
      'requestId')
  end
  return Reply.fail('REQUEST_NOT_FOUND', 'There is no request ' .. id, 'requestId')
end

-- Takes a request off the index of a worker epoch that does not have the request. False when the epoch has it.
function Attempts.forget_entry(tx, request, worker_id, worker_epoch)
  if Request.HELD[request.state] and request.workerId == worker_id and request.workerEpoch == worker_epoch then
    return false
  end
  redis.call('SREM', tx.key:workerAttempts(worker_id, worker_epoch), request.id)
  return true
end

-- The group and round of a request, or nil. `known`: groups and rounds of earlier requests of the same call, by name.
local function load_owners(tx, request, known)
  if not known then return Recovery.load_owners(tx, request) end
  local name = Group.format_name(request)
  if not known[name] then
    local group, round = Recovery.load_owners(tx, request, known)
    if not group then return nil end
    known[name] = { group, round }
  end
  return unpack(known[name], 1, 2)
end

-- The request with its group and round, after applying an abort flag that covers the group; or nil and the error.
local function with_owners(tx, request, known)
  tx.was_held = Request.HELD[request.state] or false -- before anything has changed, see broken-ends.lua
  local group, round = load_owners(tx, request, known)
  if not group then
    -- The group or its round was lost: the rest of the group was dropped just now.
    group = Group.load(tx, request.job, request.groupId)
    if not group then return nil, gone(tx, request.id) end
    request = Request.load(tx, request.id)
  end
  if Aborts.apply(tx, round, group, {}) then request = Request.load(tx, request.id) end
  return request, group, round
end

local function fenced() return Reply.fail('FENCED', 'Another attempt has the request now', 'attempt') end

-- The request of a call by the holder of an attempt, with its group and round; or nil and the error of the reply. A
-- call about many requests passes `known`, an empty table, so that each group and each round are read once.
function Attempts.load(tx, args, known)
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) then
    return nil, Reply.fail(WorkerFence.expired_worker(tx, args.workerId))
  end
  local request = Request.load(tx, args.requestId)
  local held = tx.key:workerAttempts(args.workerId, args.workerEpoch)
  if not request then
    -- Redis has lost the request while this worker had it.
    if redis.call('SISMEMBER', held, args.requestId) == 1 then Recovery.lose_missing(tx, args.requestId, held) end
    return nil, gone(tx, args.requestId)
  end
  if request.attempt ~= args.attempt or request.workerId ~= args.workerId
    or request.workerEpoch ~= args.workerEpoch then
    Attempts.forget_entry(tx, request, args.workerId, args.workerEpoch)
    return nil, fenced()
  end
  return with_owners(tx, request, known)
end

-- Returns the request of an attempt, its group and its round, or nil and an error, for an operator, who names the
-- attempt and not its holder.
function Attempts.load_named(tx, args)
  local request = Request.load(tx, args.requestId)
  if not request then return nil, gone(tx, args.requestId) end
  if request.attempt ~= args.attempt then return nil, fenced() end
  return with_owners(tx, request)
end

function Attempts.superseded() return Reply.fail('FENCED', 'The attempt has ended', 'attempt') end

-- True when the request is not wanted: it was stopped, or its group is aborted or whole. A call of the holder confirms
-- the end of the request.
function Attempts.is_ending(group, request) return request.stopped or group.state == 'aborting'
  or Group.is_whole(group) end

function Attempts.end_unwanted(tx, round, group, request, segment, tokens)
  if group.state ~= 'aborting' then return Longtail.end_surplus(tx, round, group, request, segment, tokens) end
  GroupEnds.drop_request(tx, group, request, segment, tokens)
  GroupEnds.review_dropped(tx, group)
end

-- Keeps the last failures for the status of the round.
local FAILURES_KEPT = 5
function Attempts.note_failure(tx, round, request, why)
  local failures = cjson.decode(Round.read_rest(tx, round).lastFailures or '[]')
  table.insert(failures, { requestId = request.id, reason = why.reason, message = why.message, atMs = tx.now })
  if #failures > FAILURES_KEPT then table.remove(failures, 1) end
  Round.set(tx, round, { lastFailures = cjson.encode(failures) })
end

-- Returns an unfinished attempt in an open round: its request is pending again with its tokens, or has failed for good.
-- Each return is counted and capped, except a stop that was requested (a move, new weights): the caller bounds such
-- stops.
-- `why`: {reason, message?, isFailure?, isFinal?, isWrong?, isSetback?, serverId?, deadlineMs?, segment?, tokens?}
function Attempts.put_back(tx, round, group, request, aborts, why)
  if request.state ~= 'cutting' then
    Round.add_returned(tx, round, why.reason)
    local rules = Round.rules(tx, round)
    local is_over = why.isFailure and why.isFinal
    if why.isSetback then
      local made = KeptTokens.count_made(request, why.segment, why.tokens or 0)
      is_over = Setbacks.note(tx, request, why, made, rules.maxFailures) or is_over
    end
    if not why.isFailure then
      is_over = Request.add(tx, request, 'returns', 1) > rules.maxReturns or is_over
    end
    if is_over then
      Attempts.note_failure(tx, round, request, why)
      return Longtail.fail_request(tx, round, group, request, aborts, why)
    end
  end
  KeptTokens.keep(tx, request, group, why.segment, why.tokens or 0)
  Requests.move(tx, request, group, 'pending', nil, true)
end

-- Returns an attempt of an expired worker epoch, which is no failure of the request. True when the request is pending
-- again.
function Attempts.return_attempt(tx, request)
  local group, round = Recovery.load_owners(tx, request)
  if not group then return false end
  Aborts.apply(tx, round, group, {})
  -- The request was dropped with its group, now or since the list of the holder was read.
  if group.state == 'dropped' or not Request.HELD[Request.read_state(tx, request.id)] then return false end
  if Attempts.is_ending(group, request) then
    Attempts.end_unwanted(tx, round, group, request, nil, 0)
    return false
  end
  if Round.is_cut(round, group) then
    Longtail.cut_request(tx, round, group, request, nil, 0)
    return false
  end
  Attempts.put_back(tx, round, group, request, {}, { reason = 'worker-lost' })
  return request.state == 'pending'
end

return Attempts

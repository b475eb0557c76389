--- @include "ending"
--- @include "rounds"
-- What becomes of groups that a round does not train.
local FINISHED_FIRST = 2 ^ 40 -- finished groups go before all others of the long-tail queue
local STEP_OF_PIN = 2 ^ 32 -- a pin is a step and, within it, a place in the queue

-- A group of which a sample was handed in leaves its round at once; it is `leaving` as long as a worker has a sample.
local function leave_for_longtail(round, group)
  leave_round(round, group)
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'leaving')
  group.state = 'leaving'
  redis.call('ZADD', key.leavingGroups, integer(now_ms()), group.job .. '/' .. group.groupId)
  count_settling(group.job, 1)
  bump(round, 'leavingGroups', 1)
end

local function forget_leaving(round, group)
  redis.call('ZREM', key.leavingGroups, group.job .. '/' .. group.groupId)
  bump(round, 'leavingGroups', -1)
end

local function leave_longtail(job, group_id)
  redis.call('ZREM', key.longtail(job), group_id)
  redis.call('ZREM', key.pins(job), group_id)
end

-- The step from which a group must be taken and run to its end, so that no bound is broken; nil: none. As
-- libs/policies/src/tail/pins.ts.
local function pin_step(round, group, cuts, oldest_version)
  local step = math.huge
  if round.maxCuts > 0 and cuts >= round.maxCuts then step = round.step + 1 end
  if round.maxAgeSteps > 0 then step = math.min(step, group.firstStep + round.maxAgeSteps) end
  if round.maxVersionSpan >= 0 and oldest_version then
    step = math.min(step, round.step + oldest_version + round.maxVersionSpan - round.weightVersion)
  end
  return step < math.huge and step or nil
end

local function discard_all(round, group)
  for index = 0, group.launched - 1 do
    local request = load_request(request_id(group.job, group.groupId, index))
    if request.state == 'finished' then
      waste_tokens(request, round, 'unaccepted')
      move_request(request, group, 'unfinished')
    elseif request.state == 'unfinished' then
      waste_tokens(request, round, 'cut')
    end
  end
  redis.call('HDEL', key.group(group.job, group.groupId), 'oldestVersion')
end

-- A group of a completed round, or one that has left its round, with nothing live any more goes to the long-tail queue,
-- finished samples and all; a policy that discards keeps nothing. Its place in the queue is that of its first cut;
-- finished groups go ahead.
local function settle_group(round, group)
  local group_key = key.group(group.job, group.groupId)
  if redis.call('HDEL', group_key, 'cutStarted') == 1 then redis.call('HINCRBY', group_key, 'cuts', 1) end
  count_length(group, is_whole(group) and 'finished' or 'censored', round.step)
  if round.discards then discard_all(round, group) end
  local had_left = group.state == 'leaving'
  if group.held then redis.call('ZREM', key.roundHeld(round.job, round.roundId), group.groupId) end
  redis.call('HDEL', group_key, 'pinned', 'held', 'gated')
  redis.call('HSET', group_key, 'state', 'unfinished')
  group.state, group.pinned, group.held = 'unfinished', false, false
  local known = redis.call('HMGET', group_key, 'longtailSequence', 'cuts', 'oldestVersion')
  local place = tonumber(known[1] or nil)
  if not place then
    place = redis.call('HINCRBY', key.meta, 'longtailSequence', 1)
    redis.call('HSET', group_key, 'longtailSequence', place)
  end
  redis.call('ZADD', key.longtail(group.job), integer(is_whole(group) and place - FINISHED_FIRST or place), group.groupId)
  local pin = not is_whole(group) and pin_step(round, group, tonumber(known[2] or 0), tonumber(known[3] or nil))
  if pin then
    -- On the group too, for a checkpoint.
    redis.call('HSET', group_key, 'pin', integer(pin * STEP_OF_PIN + place))
    redis.call('ZADD', key.pins(group.job), integer(pin * STEP_OF_PIN + place), group.groupId)
  else
    redis.call('HDEL', group_key, 'pin')
  end
  bump(round, 'groupsRequeued', 1)
  count_settling(group.job, -1)
  fact('longtail.requeued', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    finishedSamples = group.finished, samples = group.samples })
  if had_left then return forget_leaving(round, group) end
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group.groupId)
  round.live = bump(round, 'liveGroups', -1)
  if round.live == 0 then mark_settled(round) end
end

-- Whether a group with nothing live goes to the long-tail queue now.
local function is_settling(round, group)
  return group.state == 'leaving' or (group.state == 'live' and not takes_results(round))
end

-- Ends a request with its tokens: they are in the answer of its abort until its group is forgotten, and are waste.
local function drop_request(group, request, segment, tokens)
  keep_tokens(request, segment, tokens)
  if request.tokens > 0 then
    -- The summary of its last round may be gone; then the ledger of the job has it.
    count_ledger(request.job, group.roundId, 'waste.' .. (request.stopped or 'aborted'), request.tokens)
    if request.state ~= 'finished' then count_lost(request.job, group.roundId, request.tokens) end
    if request.stopped then redis.call('HINCRBY', key.group(group.job, group.groupId), 'tokens', 0 - request.tokens) end
  end
  move_request(request, group, 'dropped')
  fact('request.aborted', { requestId = request.id, attempt = request.attempt, tokens = request.tokens })
end

-- A sample that its group does not need or that was stopped for good has ended, however it ended.
local function end_surplus(round, group, request, segment, tokens)
  if request.stopped then
    drop_request(group, request, segment, tokens)
  else
    waste_tokens(request, round, 'surplus', segment, tokens)
    move_request(request, group, 'dropped')
  end
  if group.live > 0 then return end
  redis.call('ZREM', key.abortingGroups, group.job .. '/' .. group.groupId)
  if is_settling(round, group) then settle_group(round, group) end
end

-- All samples of the group are there: the holders of others are told to stop, again until they confirm, and it takes its
-- place in the round, or is held until there is one.
local function place_whole(round, group, aborts)
  if group.live > 0 then
    redis.call('ZADD', key.abortingGroups, 'NX', integer(now_ms()), group.job .. '/' .. group.groupId)
    end_live_requests(group, aborts, function(request) end_surplus(round, group, request, nil, 0) end)
  elseif is_settling(round, group) then
    settle_group(round, group)
  end
  if group.state ~= 'live' or not takes_results(round) then return end
  if has_place(round, group) then
    accept_group(round, group)
  else
    count_live_of_domain(round, group, -1)
    redis.call('HSET', key.group(group.job, group.groupId), 'held', 1)
    group.held = true
    redis.call('ZADD', key.roundHeld(round.job, round.roundId), bump(round, 'heldSequence', 1), group.groupId)
  end
  review_round(round)
end

-- To be called when a sample is lost for good. The group goes on with those that can still count when they are
-- `minSamples`, and needs no more than there are. False when it can never be whole.
local function goes_on(group)
  local usable = 0
  for index = 0, group.launched - 1 do
    local id = request_id(group.job, group.groupId, index)
    local state, stopped = unpack(redis.call('HMGET', key.request(id), 'state', 'stopped'))
    if state and state ~= 'failed' and state ~= 'dropped' and not stopped then usable = usable + 1 end
  end
  if usable < group.minSamples then return false end
  if usable < group.samples then
    redis.call('HSET', key.group(group.job, group.groupId), 'samples', usable)
    group.samples = usable
  end
  return true
end

local function mark_stopped(request, reason)
  redis.call('HSET', key.request(request.id), 'stopped', reason)
  request.stopped = reason
end

-- Ends one sample for good while its group goes on; its holder is told until it confirms. False, and nothing has ended,
-- when the group can not go on without it. `why`: {reason, hasEnded?, segment?, tokens?}
local function stop_sample(round, group, request, why, aborts)
  local was_whole, was_queued = is_whole(group), group.state == 'unfinished'
  mark_stopped(request, why.reason)
  if not goes_on(group) then return false end
  local completes = not was_whole and is_whole(group)
  if why.hasEnded or not HELD[request.state] or not worker_is_current(request.workerId, request.workerEpoch) then
    end_surplus(round, group, request, why.segment, why.tokens or 0)
  elseif not completes then
    redis.call('ZADD', key.abortingGroups, 'NX', integer(now_ms()), group.job .. '/' .. group.groupId)
    stop_held(request, group, aborts)
  end
  if completes and was_queued then
    redis.call('ZREM', key.pins(group.job), group.groupId)
    redis.call('HDEL', key.group(group.job, group.groupId), 'pin')
    redis.call('ZINCRBY', key.longtail(group.job), integer(-FINISHED_FIRST), group.groupId)
  elseif completes and group.state ~= 'unfinished' then
    place_whole(round, group, aborts)
  end
  return true
end

-- Ends a live request of a completed round. Only what had been started counts as cut.
local function cut_request(round, group, request, segment, tokens)
  if is_whole(group) or request.stopped then return end_surplus(round, group, request, segment, tokens) end
  local _, made = made_by_attempt(request, segment, tokens)
  if HELD[request.state] and (request.started or made > 0) then
    bump(round, 'requestsCut', 1)
    redis.call('HSET', key.group(group.job, group.groupId), 'cutStarted', 1)
  end
  if round.discards then
    waste_tokens(request, round, 'cut', segment, tokens)
  else
    keep_tokens(request, segment, tokens)
  end
  move_request(request, group, 'unfinished')
  if group.live == 0 then settle_group(round, group) end
end

-- The group can never be whole again: its other requests are dropped, and their holders told.
local function fail_group(round, group, aborts)
  for index = 0, group.launched - 1 do
    local sibling = load_request(request_id(group.job, group.groupId, index))
    if sibling.state ~= 'failed' and sibling.state ~= 'dropped' then
      if HELD[sibling.state] then
        table.insert(aborts, { requestId = sibling.id, attempt = sibling.attempt, workerId = sibling.workerId,
          workerEpoch = sibling.workerEpoch })
      end
      waste_tokens(sibling, round, 'failed')
      move_request(sibling, group, 'dropped')
    end
  end
  leave_round(round, group)
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'failed')
  redis.call('RPUSH', key.roundFailed(round.job, round.roundId), group.groupId)
  group.state = 'failed'
  bump(round, 'failedGroups', 1)
  redis.call('HINCRBY', key.job(group.job), 'failedGroups', 1)
  fact('group.failed', { job = group.job, groupId = group.groupId, roundId = round.roundId })
  review_round(round)
end

-- One request failed for good; so does its group, unless it has enough others.
local function fail_request(round, group, request, aborts, segment, tokens)
  waste_tokens(request, round, 'failed', segment, tokens)
  move_request(request, group, 'failed')
  if not goes_on(group) then return fail_group(round, group, aborts) end
  if is_whole(group) then place_whole(round, group, aborts) end
end

-- What becomes of groups that a round does not train.
local Longtail = {}

Longtail.FINISHED_FIRST = 2 ^ 40 -- finished groups go before all others of the long-tail queue
Longtail.STEP_OF_PIN = 2 ^ 32 -- a pin is a step and, within it, a place in the queue

-- A group of which a sample was handed in leaves its round at once; it is `leaving` as long as a worker has a sample.
function Longtail.enter(tx, round, group)
  Rounds.leave(tx, round, group)
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'leaving')
  group.state = 'leaving'
  redis.call('ZADD', tx.key.leavingGroups, Format.integer(tx.now), group.job .. '/' .. group.groupId)
  Counts.add_settling(tx, group.job, 1)
  Rounds.bump(tx, round, 'leavingGroups', 1)
end

function Longtail.forget_leaving(tx, round, group)
  redis.call('ZREM', tx.key.leavingGroups, group.job .. '/' .. group.groupId)
  Rounds.bump(tx, round, 'leavingGroups', -1)
end

function Longtail.leave(tx, job, group_id)
  redis.call('ZREM', tx.key:longtail(job), group_id)
  redis.call('ZREM', tx.key:pins(job), group_id)
end

-- The step from which a group must be taken and run to its end, so that no bound is broken; nil: none. As
-- libs/policies/src/tail/pin-step.ts.
local function pin_step(tx, round, group, cuts, oldest_version)
  local rules, step = Rounds.rules(tx, round), math.huge
  if rules.maxCuts > 0 and cuts >= rules.maxCuts then step = round.step + 1 end
  if rules.maxAgeSteps > 0 then step = math.min(step, group.firstStep + rules.maxAgeSteps) end
  if rules.maxVersionSpan >= 0 and oldest_version then
    step = math.min(step, round.step + oldest_version + rules.maxVersionSpan - round.weightVersion)
  end
  return step < math.huge and step or nil
end

-- True when a sample was lost without which the group can not be whole again.
local function discard_all(tx, round, group)
  local was_whole = Rounds.is_whole(group)
  local requests, is_lost = Recovery.requests_of(tx, group)
  for _, request in ipairs(requests) do
    if request.state == 'finished' then
      KeptTokens.waste(tx, request, group, round, 'unaccepted')
      Requests.move(tx, request, group, 'unfinished')
    elseif request.state == 'unfinished' then
      KeptTokens.waste(tx, request, group, round, 'cut')
    end
  end
  redis.call('HDEL', tx.key:group(group.job, group.groupId), 'oldestVersion')
  group.made = nil
  return is_lost and not was_whole
end

-- A group of a completed round, or one that has left its round, with nothing live any more goes to the long-tail queue,
-- finished samples and all; a policy that discards keeps nothing. Its place in the queue is that of its first cut;
-- finished groups go ahead.
function Longtail.settle_group(tx, round, group)
  local group_key = tx.key:group(group.job, group.groupId)
  if redis.call('HDEL', group_key, 'cutStarted') == 1 then redis.call('HINCRBY', group_key, 'cuts', 1) end
  Lengths.count(tx, group, Rounds.is_whole(group) and 'finished' or 'censored', round.step)
  if round.discards and discard_all(tx, round, group) then return Recovery.lose_group(tx, round, group) end
  local had_left = group.state == 'leaving'
  if group.held then redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId) end
  redis.call('HDEL', group_key, 'pinned', 'held', 'gated')
  redis.call('HSET', group_key, 'state', 'unfinished')
  group.state, group.pinned, group.held = 'unfinished', false, false
  local known = redis.call('HMGET', group_key, 'longtailSequence', 'cuts', 'oldestVersion')
  local place = tonumber(known[1] or nil)
  if not place then
    place = redis.call('HINCRBY', tx.key.meta, 'longtailSequence', 1)
    redis.call('HSET', group_key, 'longtailSequence', place)
  end
  redis.call('ZADD', tx.key:longtail(group.job), Format.integer(Rounds.is_whole(group)
    and place - Longtail.FINISHED_FIRST or place), group.groupId)
  local pin = not Rounds.is_whole(group)
    and pin_step(tx, round, group, tonumber(known[2] or 0), tonumber(known[3] or nil))
  if pin then
    -- On the group too, for a snapshot.
    redis.call('HSET', group_key, 'pin', Format.integer(pin * Longtail.STEP_OF_PIN + place))
    redis.call('ZADD', tx.key:pins(group.job), Format.integer(pin * Longtail.STEP_OF_PIN + place), group.groupId)
  else
    redis.call('HDEL', group_key, 'pin')
  end
  Rounds.bump(tx, round, 'groupsRequeued', 1)
  Counts.add_settling(tx, group.job, -1)
  Events.add(tx, 'longtail.requeued', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    finishedSamples = group.finished, samples = group.samples })
  if had_left then return Longtail.forget_leaving(tx, round, group) end
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  round.live = Rounds.bump(tx, round, 'liveGroups', -1)
  if round.live == 0 then Rounds.mark_settled(tx, round) end
end

-- Whether a group with nothing live goes to the long-tail queue now.
function Longtail.is_settling(round, group)
  return group.state == 'leaving' or (group.state == 'live' and not Rounds.takes_results(round))
end

-- Ends a request with its tokens: they are in the answer of its abort until its group is forgotten, and are waste.
function Longtail.drop_request(tx, group, request, segment, tokens)
  KeptTokens.keep(tx, request, group, segment, tokens)
  if request.tokens > 0 then
    -- The summary of its last round may be gone; then the ledger of the job has it.
    Ledger.count(tx, request.job, group.roundId, 'waste.' .. (request.stopped or 'aborted'), request.tokens)
    if request.state ~= 'finished' then Ledger.count_lost(tx, request.job, group.roundId, request.tokens) end
    if request.stopped then KeptTokens.add(tx, request, group, -request.tokens) end
  end
  Requests.move(tx, request, group, 'dropped')
  Events.add(tx, 'request.aborted', { requestId = request.id, attempt = request.attempt, tokens = request.tokens })
end

-- A sample that its group does not need or that was stopped for good has ended, however it ended.
function Longtail.end_surplus(tx, round, group, request, segment, tokens)
  if request.stopped then
    Longtail.drop_request(tx, group, request, segment, tokens)
  else
    KeptTokens.waste(tx, request, group, round, 'surplus', segment, tokens)
    Requests.move(tx, request, group, 'dropped')
  end
  if group.live > 0 then return end
  redis.call('ZREM', tx.key.abortingGroups, group.job .. '/' .. group.groupId)
  if Longtail.is_settling(round, group) then Longtail.settle_group(tx, round, group) end
end

-- All samples of the group are there: the holders of others are told to stop, again until they confirm, and it takes
-- its place in the round, or is held until there is one.
function Longtail.place_whole(tx, round, group, aborts)
  if group.live > 0 then
    redis.call('ZADD', tx.key.abortingGroups, 'NX', Format.integer(tx.now), group.job .. '/' .. group.groupId)
    Cancellation.stop_live(tx, round, group, aborts, function(request)
      Longtail.end_surplus(tx, round, group, request, nil, 0)
    end)
  end
  if group.live == 0 and Longtail.is_settling(round, group) then Longtail.settle_group(tx, round, group) end
  if group.state ~= 'live' or not Rounds.takes_results(round) then return end
  if Places.has_place(tx, round, group) then
    Rounds.accept_group(tx, round, group)
  else
    Places.count_live(tx, round, group, -1)
    redis.call('HSET', tx.key:group(group.job, group.groupId), 'held', 1)
    group.held = true
    redis.call('ZADD', tx.key:roundHeld(round.job, round.roundId), Rounds.bump(tx, round, 'heldSequence', 1),
      group.groupId)
  end
  Rounds.review_round(tx, round)
end

-- To be called when a sample is lost for good. The group continues with those that can still count when they are
-- `minSamples`, and needs no more than there are. False when it can never be whole.
local function can_continue(tx, group)
  local usable = 0
  for index = 0, group.launched - 1 do
    local id = Requests.id_of(group.job, group.groupId, index)
    local state, stopped = unpack(redis.call('HMGET', tx.key:request(id), 'state', 'stopped'))
    if state and state ~= 'failed' and state ~= 'dropped' and not stopped then usable = usable + 1 end
  end
  if usable < group.minSamples then return false end
  if usable < group.samples then
    redis.call('HSET', tx.key:group(group.job, group.groupId), 'samples', usable)
    group.samples = usable
  end
  return true
end

function Longtail.mark_stopped(tx, request, reason)
  redis.call('HSET', tx.key:request(request.id), 'stopped', reason)
  request.stopped = reason
end

-- Ends one sample for good while its group continues; its holder is told until it confirms. False, and nothing has
-- ended, when the group cannot continue without it. `why`: {reason, hasEnded?, segment?, tokens?}
function Longtail.stop_sample(tx, round, group, request, why, aborts)
  local was_whole, was_queued = Rounds.is_whole(group), group.state == 'unfinished'
  Longtail.mark_stopped(tx, request, why.reason)
  if not can_continue(tx, group) then return false end
  local completes = not was_whole and Rounds.is_whole(group)
  if why.hasEnded or not Requests.HELD[request.state] or not WorkerFence.is_current(tx, request.workerId,
    request.workerEpoch) then
    Longtail.end_surplus(tx, round, group, request, why.segment, why.tokens or 0)
  elseif not completes then
    redis.call('ZADD', tx.key.abortingGroups, 'NX', Format.integer(tx.now), group.job .. '/' .. group.groupId)
    Cancellation.stop_held(tx, request, group, aborts)
  end
  if completes and was_queued then
    redis.call('ZREM', tx.key:pins(group.job), group.groupId)
    redis.call('HDEL', tx.key:group(group.job, group.groupId), 'pin')
    redis.call('ZINCRBY', tx.key:longtail(group.job), Format.integer(-Longtail.FINISHED_FIRST), group.groupId)
  elseif completes and group.state ~= 'unfinished' then
    Longtail.place_whole(tx, round, group, aborts)
  end
  return true
end

-- Ends a live request of a completed round. Only what had been started counts as cut.
function Longtail.cut_request(tx, round, group, request, segment, tokens)
  if Rounds.is_whole(group) or request.stopped then
    return Longtail.end_surplus(tx, round, group, request, segment, tokens)
  end
  local _, made = KeptTokens.made_by_attempt(request, segment, tokens)
  if Requests.HELD[request.state] and (request.started or made > 0) then
    Rounds.bump(tx, round, 'requestsCut', 1)
    redis.call('HSET', tx.key:group(group.job, group.groupId), 'cutStarted', 1)
  end
  if round.discards then
    KeptTokens.waste(tx, request, group, round, 'cut', segment, tokens)
  else
    KeptTokens.keep(tx, request, group, segment, tokens)
  end
  Requests.move(tx, request, group, 'unfinished')
  if group.live == 0 then Longtail.settle_group(tx, round, group) end
end

-- Cuts what is live of a group; workers that have requests of it are to be told, again until they confirm.
function Longtail.cut_live(tx, round, group, aborts)
  Cancellation.stop_live(tx, round, group, aborts, function(request)
    Longtail.cut_request(tx, round, group, request, nil, 0)
  end)
end

-- The group can never be whole again: its other requests are dropped, and their holders told. `why` as in
-- LostGroups.note.
function Longtail.fail_group(tx, round, group, aborts, why)
  LostGroups.note(tx, group, 'failed', why)
  for _, sibling in ipairs(Recovery.requests_of(tx, group)) do
    if sibling.state ~= 'failed' and sibling.state ~= 'dropped' then
      if Requests.HELD[sibling.state] then table.insert(aborts, Requests.fence(sibling)) end
      KeptTokens.waste(tx, sibling, group, round, 'failed')
      Requests.move(tx, sibling, group, 'dropped')
    end
  end
  Rounds.leave(tx, round, group)
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'failed')
  redis.call('RPUSH', tx.key:roundFailed(round.job, round.roundId), group.groupId)
  group.state = 'failed'
  Rounds.bump(tx, round, 'failedGroups', 1)
  redis.call('HINCRBY', tx.key:job(group.job), 'failedGroups', 1)
  Events.add(tx, 'group.failed', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    reason = why.reason })
  Rounds.review_round(tx, round)
end

-- One request failed for good; so does its group, unless it has enough others. `why` as in Attempts.put_back.
function Longtail.fail_request(tx, round, group, request, aborts, why)
  KeptTokens.waste(tx, request, group, round, 'failed', why.segment, why.tokens or 0)
  Requests.move(tx, request, group, 'failed')
  if not can_continue(tx, group) then
    return Longtail.fail_group(tx, round, group, aborts,
      { reason = why.reason, message = why.message, requestId = request.id })
  end
  if Rounds.is_whole(group) then Longtail.place_whole(tx, round, group, aborts) end
end

return Longtail

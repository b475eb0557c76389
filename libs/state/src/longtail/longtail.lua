-- Requests that a round cuts, fails or does not need, and groups that have become whole.
local Longtail = {}

-- Takes a group out of its round when one of its samples was handed in. The group is `leaving` as long as a worker has
-- one of its samples.
function Longtail.enter(tx, round, group)
  Rounds.leave(tx, round, group)
  Group.set(tx, group, { state = 'leaving' })
  redis.call('ZADD', tx.key.leavingGroups, Format.integer(tx.now), Group.format_name(group))
  Counts.add_settling(tx, group.job, 1)
  Round.add(tx, round, 'leavingGroups', 1)
end

-- Ends a sample that its group does not need or that was stopped for good, however its attempt ended.
function Longtail.end_surplus(tx, round, group, request, segment, tokens)
  if request.stopped then
    GroupEnds.drop_request(tx, group, request, segment, tokens)
  else
    KeptTokens.waste(tx, request, group, round, 'surplus', segment, tokens)
    Requests.move(tx, request, group, 'dropped')
  end
  if group.live > 0 then return end
  redis.call('ZREM', tx.key.abortingGroups, Group.format_name(group))
  if GroupEnds.is_settling(round, group) then GroupEnds.settle_group(tx, round, group) end
end

-- Gives a whole group a place in the round, or holds the group until a place is free. The holders of surplus samples of
-- the group are asked to stop until they confirm.
function Longtail.place_whole(tx, round, group, aborts)
  if group.live > 0 then
    redis.call('ZADD', tx.key.abortingGroups, 'NX', Format.integer(tx.now), Group.format_name(group))
    GroupEnds.stop_live(tx, round, group, aborts, function(request)
      Longtail.end_surplus(tx, round, group, request, nil, 0)
    end)
  end
  if group.live == 0 and GroupEnds.is_settling(round, group) then GroupEnds.settle_group(tx, round, group) end
  if group.state ~= 'live' or not Round.takes_results(round) then return end
  if Places.has_place(tx, round, group) then
    Rounds.accept_group(tx, round, group)
  else
    Places.count_live(tx, round, group, -1)
    Group.set(tx, group, { held = true })
    redis.call('ZADD', tx.key:roundHeld(round.job, round.roundId), Round.add(tx, round, 'heldSequence', 1),
      group.groupId)
  end
  Rounds.review_round(tx, round)
end

-- To be called when a sample is lost for good. The group continues if at least `minSamples` of its samples can still
-- count, and then needs no more samples than these. False when the group can never be whole.
local function can_continue(tx, group)
  local usable = 0
  for index = 0, group.launched - 1 do
    if Request.can_count(tx, Request.format_id(group.job, group.groupId, index)) then usable = usable + 1 end
  end
  if usable < group.minSamples then return false end
  if usable < group.samples then Group.set(tx, group, { samples = usable }) end
  return true
end

-- Ends one sample for good while its group continues; its holder is asked to stop until it confirms. False, and nothing
-- has ended, when the group cannot continue without the sample. `why`: {reason, hasEnded?, segment?, tokens?}
function Longtail.stop_sample(tx, round, group, request, why, aborts)
  local was_whole, was_queued = Group.is_whole(group), group.state == 'unfinished'
  Request.set(tx, request, { stopped = why.reason })
  if not can_continue(tx, group) then return false end
  local completes = not was_whole and Group.is_whole(group)
  if why.hasEnded or not Request.HELD[request.state] or not WorkerFence.is_current(tx, request.workerId,
    request.workerEpoch) then
    Longtail.end_surplus(tx, round, group, request, why.segment, why.tokens or 0)
  elseif not completes then
    redis.call('ZADD', tx.key.abortingGroups, 'NX', Format.integer(tx.now), Group.format_name(group))
    Cancellation.stop_held(tx, request, group, aborts)
  end
  if completes and was_queued then
    LongtailQueue.move_to_front(tx, group)
  elseif completes and group.state ~= 'unfinished' then
    Longtail.place_whole(tx, round, group, aborts)
  end
  return true
end

-- Ends a live request of a completed round. Only a request that had been started counts as cut.
function Longtail.cut_request(tx, round, group, request, segment, tokens)
  if Group.is_whole(group) or request.stopped then
    return Longtail.end_surplus(tx, round, group, request, segment, tokens)
  end
  local made = KeptTokens.count_made(request, segment, tokens)
  if Request.HELD[request.state] and (request.started or made > 0) then
    Round.add(tx, round, 'requestsCut', 1)
    Group.set(tx, group, { cutStarted = true })
  end
  if round.discards then
    KeptTokens.waste(tx, request, group, round, 'cut', segment, tokens)
  else
    KeptTokens.keep(tx, request, group, segment, tokens)
  end
  Requests.move(tx, request, group, 'unfinished')
  if group.live == 0 then GroupEnds.settle_group(tx, round, group) end
end

-- Cuts the live requests of a group; `aborts` gets the commands for their workers, which are repeated until these
-- confirm.
function Longtail.cut_live(tx, round, group, aborts)
  GroupEnds.stop_live(tx, round, group, aborts, function(request)
    Longtail.cut_request(tx, round, group, request, nil, 0)
  end)
end

-- Fails one request for good, and its group too, unless enough other samples are left. `why` as in Attempts.put_back.
function Longtail.fail_request(tx, round, group, request, aborts, why)
  KeptTokens.waste(tx, request, group, round, 'failed', why.segment, why.tokens or 0)
  Requests.move(tx, request, group, 'failed')
  if not can_continue(tx, group) then
    return GroupEnds.fail_group(tx, round, group, aborts,
      { reason = why.reason, message = why.message, requestId = request.id })
  end
  if Group.is_whole(group) then Longtail.place_whole(tx, round, group, aborts) end
end

return Longtail

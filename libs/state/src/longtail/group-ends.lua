-- Ends of a group in its round or in the long-tail queue: dropped, failed, cut with its tokens, or lost.
local GroupEnds = {}

local DEFAULT_KEPT_MS = 600000

-- How long groups that were dropped are kept, for the answers of aborts.
function GroupEnds.kept_ms(tx) return tonumber(redis.call('HGET', tx.key.meta, 'abortKeptMs') or DEFAULT_KEPT_MS) end

-- Whether a group with nothing live goes to the long-tail queue now.
function GroupEnds.is_settling(round, group)
  return group.state == 'leaving' or (group.state == 'live' and not Round.takes_results(round))
end

-- Drops a request. The tokens of the request are waste; the answer of the abort has them until the group is deleted.
function GroupEnds.drop_request(tx, group, request, segment, tokens)
  KeptTokens.keep(tx, request, group, segment, tokens)
  if request.tokens > 0 then
    -- If the summary of the group's last round is gone, the ledger of the job counts the waste.
    Ledger.count(tx, group, 'waste.' .. (request.stopped or 'aborted'), request.tokens)
    if request.state ~= 'finished' then Ledger.count_lost(tx, group, request.tokens) end
    if request.stopped then KeptTokens.add(tx, request, group, -request.tokens) end
  end
  Requests.move(tx, request, group, 'dropped')
  Events.add(tx, 'request.aborted', { requestId = request.id, attempt = request.attempt, tokens = request.tokens })
end

-- Ends an aborted group without live requests. To be called after requests of the group were dropped.
function GroupEnds.review_dropped(tx, group)
  if group.live > 0 then return end
  local name = Group.format_name(group)
  Group.set(tx, group, { state = 'dropped' })
  redis.call('ZREM', tx.key.abortingGroups, name)
  redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now + GroupEnds.kept_ms(tx)), name)
end

-- Takes a group out of its round, off its way to the long-tail queue, or out of the queue.
local function take_out(tx, round, group)
  if group.state == 'live' then
    Rounds.leave(tx, round, group)
    Round.add(tx, round, 'droppedGroups', 1)
    return Rounds.review_left(tx, round)
  end
  if group.state == 'leaving' then
    Counts.add_settling(tx, group.job, -1)
    return LongtailQueue.forget_leaving(tx, round, group)
  end
  LongtailQueue.remove(tx, group.job, group.groupId)
end

-- Drops a group that may be aborted. `round`: the round of the group; nil when its summary is no longer kept.
-- `request_id`: the sample for which the group is dropped, or nil.
function GroupEnds.drop_group(tx, round, group, reason, abort_id, aborts, request_id)
  if not round and group.state ~= 'unfinished' then return LostRecords.drop_rest(tx, group) end
  LostGroups.note(tx, group, 'dropped', { reason = reason, requestId = request_id })
  take_out(tx, round, group)
  Group.set(tx, group, { state = 'aborting', dropReason = reason })
  Job.add(tx, group.job, 'droppedGroups', 1)
  redis.call('ZADD', tx.key.abortingGroups, Format.integer(tx.now), Group.format_name(group))
  Events.add(tx, 'group.dropped', { job = group.job, groupId = group.groupId, roundId = group.roundId,
    abortId = abort_id, reason = reason })
  local function drop(request) GroupEnds.drop_request(tx, group, request, nil, 0) end
  for _, request in ipairs(LostRecords.load_requests(tx, group)) do
    if request.state == 'finished' or request.state == 'unfinished' then drop(request)
    else Cancellation.stop(tx, request, group, aborts, drop) end
  end
  GroupEnds.review_dropped(tx, group)
end

-- Fails a group that can never be whole: its other requests are dropped, and `aborts` gets the commands for their
-- holders. `why` as in LostGroups.note.
function GroupEnds.fail_group(tx, round, group, aborts, why)
  LostGroups.note(tx, group, 'failed', why)
  for _, sibling in ipairs(LostRecords.load_requests(tx, group)) do
    if sibling.state ~= 'failed' and sibling.state ~= 'dropped' then
      if Request.HELD[sibling.state] then table.insert(aborts, Request.fence(sibling)) end
      KeptTokens.waste(tx, sibling, group, round, 'failed')
      Requests.move(tx, sibling, group, 'dropped')
    end
  end
  Rounds.leave(tx, round, group)
  Group.set(tx, group, { state = 'failed' })
  redis.call('RPUSH', tx.key:roundFailed(round.job, round.roundId), group.groupId)
  Round.add(tx, round, 'failedGroups', 1)
  Job.add(tx, group.job, 'failedGroups', 1)
  Events.add(tx, 'group.failed', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    reason = why.reason })
  Rounds.review_round(tx, round)
end

-- The step from which a round must take the group and run it to its end, or a bound would be broken; nil without one.
-- libs/policies/src/tail/pin-step.ts has the same rule.
local function pin_step(tx, round, group)
  local rules, step = Round.rules(tx, round), math.huge
  if rules.maxCuts > 0 and group.cuts >= rules.maxCuts then step = round.step + 1 end
  if rules.maxAgeSteps > 0 then step = math.min(step, group.firstStep + rules.maxAgeSteps) end
  if rules.maxVersionSpan >= 0 and group.oldestVersion then
    step = math.min(step, round.step + group.oldestVersion + rules.maxVersionSpan - round.weightVersion)
  end
  return step < math.huge and step or nil
end

-- Discards the tokens of all samples. True when the group has lost a sample that it needs to become whole again.
local function discard_all(tx, round, group)
  local was_whole = Group.is_whole(group)
  local requests, is_lost = LostRecords.load_requests(tx, group)
  for _, request in ipairs(requests) do
    if request.state == 'finished' then
      KeptTokens.waste(tx, request, group, round, 'unaccepted')
      Requests.move(tx, request, group, 'unfinished')
    elseif request.state == 'unfinished' then
      KeptTokens.waste(tx, request, group, round, 'cut')
    end
  end
  Group.set(tx, group, { oldestVersion = false })
  return is_lost and not was_whole
end

-- Moves a group without live requests to the long-tail queue, with its finished samples, after its round was completed
-- or after the group has left its round. A policy that discards keeps no tokens. The place of the group in the queue is
-- the place of its first cut; finished groups come first.
function GroupEnds.settle_group(tx, round, group)
  Group.read_made(tx, group)
  Group.read_past(tx, group)
  if group.cutStarted then
    Group.set(tx, group, { cutStarted = false })
    Group.add(tx, group, 'cuts', 1)
  end
  Lengths.count(tx, group, Group.is_whole(group) and 'finished' or 'censored', round.step)
  if round.discards and discard_all(tx, round, group) then
    return GroupEnds.drop_group(tx, round, group, 'lost', nil, {})
  end
  local had_left = group.state == 'leaving'
  if group.held then redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId) end
  Group.set(tx, group, { state = 'unfinished', pinned = false, held = false, gated = false,
    longtailSequence = group.longtailSequence or redis.call('HINCRBY', tx.key.meta, 'longtailSequence', 1) })
  LongtailQueue.add(tx, group, not Group.is_whole(group) and pin_step(tx, round, group) or nil)
  Round.add(tx, round, 'groupsRequeued', 1)
  Counts.add_settling(tx, group.job, -1)
  Events.add(tx, 'longtail.requeued', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    finishedSamples = group.finished, samples = group.samples })
  if had_left then return LongtailQueue.forget_leaving(tx, round, group) end
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  Round.add(tx, round, 'liveGroups', -1)
  if round.liveGroups == 0 then Rounds.mark_settled(tx, round) end
end

-- Ends a group with a lost sample, unless the group is whole without it. The sweep sends commands to workers that still
-- have requests of the group. `round`: the round of the group, or nil.
function GroupEnds.lose_group(tx, round, group)
  if group.state == 'dropped' or group.state == 'failed' then return end
  if group.state == 'aborting' then return GroupEnds.review_dropped(tx, group) end
  if not round and group.state ~= 'unfinished' then return LostRecords.drop_rest(tx, group) end
  if Group.is_whole(group) then
    if round and group.live == 0 and GroupEnds.is_settling(round, group) then
      GroupEnds.settle_group(tx, round, group)
    end
    return
  end
  -- A closed round keeps its groups: the trainer has trained on them.
  if group.state == 'accepted' and round.state == 'closed' then return end
  if group.state == 'accepted' then
    Rounds.leave_accepted(tx, round, group.groupId, group.samples)
    return LostRecords.drop_rest(tx, group)
  end
  if group.state == 'live' and Round.takes_results(round) then
    return GroupEnds.fail_group(tx, round, group, {}, { reason = 'lost' })
  end
  return GroupEnds.drop_group(tx, round, group, 'lost', nil, {})
end

-- Stops the live requests of a group, by Cancellation.stop. `round`: the round of the group, or nil; `wanted`, if
-- given, selects the requests. A group with a lost request ends, unless the group is whole without it.
function GroupEnds.stop_live(tx, round, group, aborts, ending, wanted)
  local requests, is_lost = LostRecords.load_requests(tx, group)
  for _, request in ipairs(requests) do
    if not wanted or wanted(request) then Cancellation.stop(tx, request, group, aborts, ending) end
  end
  if is_lost then GroupEnds.lose_group(tx, round, group) end
end

return GroupEnds

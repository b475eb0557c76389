-- Acceptance of groups in a round, and the end of the round. Other ends of groups: longtail/group-ends.lua.
local Rounds = {}

-- Notes that all unaccepted groups of the round have ended or are in the long-tail queue.
function Rounds.mark_settled(tx, round)
  Round.set(tx, round, { settled = true })
  -- A closed round stays in the sweep until it is folded.
  if round.state == 'completed' then redis.call('SREM', tx.key.sweeps, Round.format_name(round)) end
  Events.add(tx, 'round.settled', { job = round.job, roundId = round.roundId })
end

-- Completes a round by one flag, however many groups it has: every script checks the flag, and the sweep follows.
function Rounds.complete(tx, round, reason)
  Round.set(tx, round, { state = 'completed', completedReason = reason, completedAtMs = tx.now })
  redis.call('ZREM', tx.key.roundDeadlines, Round.format_name(round))
  -- The gate of the round holds no requests back any more: its pending requests are to be cut.
  ClaimTurns.readmit(tx, round.job)
  Events.add(tx, 'round.completed', { job = round.job, roundId = round.roundId, step = round.step, reason = reason,
    acceptedGroups = round.acceptedGroups })
  if round.liveGroups > 0 then
    redis.call('SADD', tx.key.sweeps, Round.format_name(round))
    Counts.add_settling(tx, round.job, round.liveGroups)
  else
    Rounds.mark_settled(tx, round)
  end
end

function Rounds.accept_group(tx, round, group)
  if group.held then
    redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId)
  else
    Places.count_live(tx, round, group, -1)
  end
  Places.take(tx, round, group)
  local taken_ms = tx.now - round.openedAtMs
  local changes = { state = 'accepted', finishedMs = taken_ms }
  if group.pinned or group.held then changes.pinned, changes.held = false, false end
  Group.set(tx, group, changes)
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  redis.call('RPUSH', tx.key:roundAccepted(round.job, round.roundId), group.groupId)
  Group.read_made(tx, group)
  local kind = group.taken and 'tail' or 'bulk'
  Round.add_all(tx, round, { acceptedGroups = 1, liveGroups = -1, acceptedRequests = group.samples,
    acceptedTokens = group.tokens, [kind .. 'Groups'] = 1 },
    { [kind .. 'Ms'] = taken_ms, longestTokens = math.max(round.longestTokens, group.longest) })
  Lengths.count(tx, group, 'finished', round.step)
  Events.add(tx, 'round.progressed', { job = round.job, roundId = round.roundId, groupId = group.groupId,
    acceptedGroups = round.acceptedGroups, neededGroups = round.neededGroups })
end

-- Gives free places to groups that are held. True when there may be more places than one script gives.
local PLACES_A_SCRIPT = 32
local function give_places(tx, round)
  local held = tx.key:roundHeld(round.job, round.roundId)
  if redis.call('EXISTS', held) == 0 then return false end
  for given = 0, PLACES_A_SCRIPT do
    local group_id = Places.free(tx, round) > 0 and redis.call('ZRANGE', held, 0, 0)[1]
    if not group_id then return false end
    if given == PLACES_A_SCRIPT then return true end
    local group = Group.load(tx, round.job, group_id)
    -- Groups behind an aborted group have their turn when the abort has taken the aborted group out.
    if group and group.arrival <= round.abortedUpTo then return false end
    if group then
      Rounds.accept_group(tx, round, group)
    else
      LostRecords.remove_live_group(tx, round, group_id)
    end
  end
end

-- Completes a round that has all the groups it can get, but not while it is still `opening`.
function Rounds.review_round(tx, round)
  if not Round.takes_results(round) then return end
  if round.state == 'open' and Round.count_coming(round) == 0 then Places.release_domains(tx, round) end
  -- The sweep gives the other places.
  if give_places(tx, round) then redis.call('SADD', tx.key.sweeps, Round.format_name(round)) end
  if round.state ~= 'open' then return end
  local has_all = round.acceptedGroups >= round.neededGroups
  local gets_no_more = round.shortfall == 'accept-fewer' and round.liveGroups == 0 and Round.count_coming(round) == 0
  if (has_all or gets_no_more) and Rewards.missing(tx, round) == 0 then
    Rounds.complete(tx, round, has_all and 'accepted' or 'accepted-fewer')
  end
end

-- Updates a round that a group has left: a live group, or a group that was to be given back.
function Rounds.review_left(tx, round)
  if Round.takes_results(round) then return Rounds.review_round(tx, round) end
  if round.cancelMode ~= 'drop' then Counts.add_settling(tx, round.job, -1) end
  if round.liveGroups == 0 then Rounds.mark_settled(tx, round) end
end

-- Takes an accepted group out of the results: an open round asks for another group, and a cancelled round was to give
-- the group back. `samples`: nil for a group that is gone.
function Rounds.leave_accepted(tx, round, group_id, samples)
  if redis.call('LREM', tx.key:roundAccepted(round.job, round.roundId), 1, group_id) == 0 then return end
  if round.state == 'cancelled' then
    Round.add(tx, round, 'liveGroups', -1)
    return Rounds.review_left(tx, round)
  end
  Round.add(tx, round, 'acceptedGroups', -1)
  if samples then Round.add(tx, round, 'acceptedRequests', -samples) end
  Rewards.forget(tx, round, group_id, samples or 0)
  if round.hasQuotas then Places.add_spare(tx, round, 1) end
  Rounds.review_round(tx, round)
end

-- Takes a live group out of its round; the caller decides where it goes.
function Rounds.leave(tx, round, group)
  if group.pinned then
    Places.release_reserved(tx, round)
  elseif not group.held then
    Places.count_live(tx, round, group, -1)
  end
  if group.pinned or group.held then
    Group.set(tx, group, { pinned = false, held = false })
    redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId)
  end
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  Round.add(tx, round, 'liveGroups', -1)
end

local EVERY_GROUP = 9007199254740991 -- as a number up to which all groups are aborted
-- Cancels a round that is not closed, by one flag (rounds/cancel.lua). Returns the number of groups that are given back
-- or dropped.
function Rounds.cancel(tx, round, mode, reason)
  local groups = round.liveGroups + round.acceptedGroups
  -- Groups that are to enter the queue now, less the groups that were to enter it before and are counted already.
  local to_come_back = mode == 'requeue' and groups or 0
  local settling = to_come_back - (round.state == 'completed' and round.liveGroups or 0)
  Round.set(tx, round, { state = 'cancelled', cancelMode = mode, cancelReason = reason, cancelledGroups = groups,
    liveGroups = groups, acceptedGroups = 0, settled = false })
  if mode == 'drop' then Round.set(tx, round, { abortedUpTo = EVERY_GROUP, abortedBy = 'round.cancel' }) end
  Counts.add_settling(tx, round.job, settling)
  Rewards.forget_all(tx, round)
  LostGroups.leave_to_next(tx, round.job, round.roundId)
  Job.set(tx, round.job, { openRoundId = false })
  redis.call('SREM', tx.key.openJobs, round.job)
  redis.call('ZREM', tx.key.roundDeadlines, Round.format_name(round))
  redis.call('SADD', tx.key.sweeps, Round.format_name(round))
  Events.add(tx, 'round.cancelled', { job = round.job, roundId = round.roundId, step = round.step, mode = mode,
    groups = groups, reason = reason })
  if groups == 0 then Rounds.mark_settled(tx, round) end
  return groups
end

return Rounds

--[[ Folds one page of a closed round into the counts. Accepted groups are counted in the ledger, then trained (or
dropped if their rewards exclude them) and deleted. Failed groups, and requests of a group that is gone, are deleted. A
cancelled round has only failed groups left, because its accepted groups were given back before.
A page ends with the group that brings it to 32 requests. The summaries of the last 16 rounds are kept.
ARGV[1] JSON: {job, roundId}
Reply: more   boolean; false also while a surplus sample is not confirmed: the sweep calls again later
Events: group.dropped, request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE, SUMMARIES_KEPT = 32, 16
  local round = Round.load(tx, args.job, args.roundId)
  if not round or Round.takes_results(round) or round.state == 'completed' then
    return Reply.object({ more = false })
  end
  -- The ledger is counted first: it needs the records that are deleted here.
  if not TrainedLedger.count_accepted(tx, args.job, args.roundId) then
    return Reply.object({ more = true })
  end

  local trained_groups = tx.key:trainedGroups(args.job)
  local touched, waiting = 0, false
  local function fold_group(group, trained)
    local becomes = Rewards.is_excluded(tx, round, group.groupId) and 'dropped' or 'trained'
    GroupDeletion.delete(tx, args.job, group.groupId, group.launched, group.promptRef, function(request)
      if request.state == 'finished' then Counts.count_again(tx, request, 'finished', becomes) end
    end)
    if not trained then return end
    Counts.add_requests(tx, args.job, 'finished', -group.samples)
    Counts.add_requests(tx, args.job, becomes, group.samples)
    if becomes == 'dropped' then
      Events.add(tx, 'group.dropped', { job = args.job, groupId = group.groupId, roundId = args.roundId,
        reason = 'equal-rewards' })
    end
    redis.call('ZADD', trained_groups, round.step, group.groupId)
  end
  local function fold_lost_group(group_id, trained)
    Counts.note_lost(tx, args.job, args.job .. '/' .. group_id)
    local group = { job = args.job, groupId = group_id, live = 0, finished = 0 }
    GroupDeletion.delete(tx, args.job, group_id, GroupDeletion.MAX_SAMPLES, nil, function(request)
      Requests.move(tx, request, group, trained and request.state == 'finished' and 'trained' or 'dropped')
    end)
    if trained then redis.call('ZADD', trained_groups, round.step, group_id) end
  end
  local function fold_list(list, trained)
    while touched < PAGE do
      local group_id = redis.call('LINDEX', list, 0)
      if not group_id then return end
      -- A worker still has a surplus sample: the sweep of aborts repeats its command to the worker.
      local group = Group.load(tx, args.job, group_id)
      waiting = group ~= nil and group.live > 0
      if waiting then return end
      redis.call('LPOP', list)
      if group then fold_group(group, trained) else fold_lost_group(group_id, trained) end
      touched = touched + (group and group.launched or GroupDeletion.MAX_SAMPLES)
    end
  end
  local accepted, failed = tx.key:roundAccepted(args.job, args.roundId), tx.key:roundFailed(args.job, args.roundId)
  if round.state == 'closed' then fold_list(accepted, true) end
  fold_list(failed, false)

  local done = redis.call('EXISTS', accepted, failed) == 0
  if done and round.settled then
    Ledger.fold(tx, round)
    redis.call('SREM', tx.key.sweeps, Round.format_name(round))
    Round.set(tx, round, { folded = true })
    redis.call('UNLINK', tx.key:roundHeld(args.job, args.roundId), tx.key:roundPlaces(args.job, args.roundId),
      tx.key:roundDigests(args.job, args.roundId), tx.key:roundRewards(args.job, args.roundId),
      tx.key:roundLost(args.job, args.roundId))
    local rounds = tx.key:rounds(args.job)
    local surplus = redis.call('ZRANGE', rounds, 0, -1 - SUMMARIES_KEPT)
    for _, old in ipairs(surplus) do
      local kept = Round.load(tx, args.job, old)
      if not kept or not Round.read_rest(tx, kept).folded or kept.leavingGroups > 0 then break end
      Round.delete(tx, args.job, old)
      redis.call('ZREM', rounds, old)
    end
    if surplus[1] then
      -- Groups trained before are forgotten with their rounds.
      redis.call('ZREMRANGEBYSCORE', trained_groups, '-inf', '(' .. redis.call('ZRANGE', rounds, 0, 0, 'WITHSCORES')[2])
    end
  end
  return Reply.object({ more = not done and not waiting })
end

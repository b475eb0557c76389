--[[ Takes the report of a trainer about progress that Redis has lost. `groups`: groups trained in a step that Redis
does not count as trained. Each group is taken out of its round or queue, its holders are stopped, and it counts as
trained once, even if Redis does not know the group. A round of that step or an earlier step that is not closed is
cancelled: its other groups go to the long-tail queue. With the last page the step counts as trained. `groupIds`: ids to
check; the unknown ids are returned. A repeat changes nothing.
ARGV[1] JSON: {job, trainerEpoch, takeoverId, newEpoch, stamp, step, groups, isLast, groupIds}: ReconcileArgs. Without a
  trainerEpoch a job that Redis has lost as a whole is created; a repeat with the same takeoverId gets the same epoch
Reply: ReconcileAnswer
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, RESTORE_UNFINISHED. Events: job.reconciled, round.cancelled,
round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local job, step = args.job, args.step
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local epoch = args.trainerEpoch
  if not epoch and not Job.read_epoch(tx, job) then
    epoch = args.newEpoch
    redis.call('SADD', tx.key.jobs, job)
    Job.set(tx, job, { stepsTrained = 0 })
    Trainer.begin_epoch(tx, job, args.takeoverId, epoch)
  end
  epoch = epoch or Trainer.epoch_of_takeover(tx, job, args.takeoverId)
  refused = Trainer.error(tx, job, epoch) or Trainer.restore_error(tx, job)
  if refused then return refused end
  Trainer.seen(tx, job)

  local aborts, counted, cancelled = {}, 0, nil

  local function leave_dropped(_, group)
    redis.call('ZREM', tx.key.abortingGroups, Group.format_name(group))
    redis.call('ZREM', tx.key.droppedGroups, Group.format_name(group))
    Job.add(tx, job, 'droppedGroups', -1)
  end
  local leave = {
    live = function(round, group)
      Rounds.leave(tx, round, group)
      Rounds.review_left(tx, round)
    end,
    accepted = function(round, group)
      redis.call('UNLINK', tx.key:roundDigests(job, round.roundId))
      Rounds.leave_accepted(tx, round, group.groupId, group.samples)
    end,
    leaving = function(round, group)
      Counts.add_settling(tx, job, -1)
      LongtailQueue.forget_leaving(tx, round, group)
    end,
    unfinished = function(_, group) LongtailQueue.remove(tx, job, group.groupId) end,
    failed = function(round, group)
      redis.call('LREM', tx.key:roundFailed(job, round.roundId), 1, group.groupId)
      Job.add(tx, job, 'failedGroups', -1)
    end,
    aborting = leave_dropped, dropped = leave_dropped,
  }

  -- Counts as many requests as the group needs as trained, finished requests first; the other requests are surplus.
  -- Returns how many are trained.
  local function train_requests(group)
    local trained, unfinished = 0, group.samples - group.finished
    GroupDeletion.delete(tx, job, group.groupId, group.launched, group.promptRef, function(request)
      if Request.HELD[request.state] then table.insert(aborts, Request.fence(request)) end
      KeptTokens.keep(tx, request, group, nil, 0)
      local is_wanted = trained < group.samples
      if request.state ~= 'finished' then
        is_wanted = unfinished > 0
        unfinished = unfinished - 1
      end
      if is_wanted then
        Requests.move(tx, request, group, 'trained')
        trained = trained + 1
      elseif request.state ~= 'dropped' and request.state ~= 'failed' then
        if request.tokens > 0 then Ledger.count(tx, group, 'waste.surplus', request.tokens) end
        Requests.move(tx, request, group, 'dropped')
      end
    end)
    return trained
  end

  local function train(group_id, samples)
    if redis.call('ZSCORE', tx.key:trainedGroups(job), group_id) then return end
    local group = Group.load(tx, job, group_id)
    local round = group and Round.load(tx, job, group.roundId)
    -- The group is trained already: its round is closed and about to be folded.
    if group and group.state == 'accepted' and round and round.state == 'closed' then return end
    if group then
      -- A group whose round is gone can only be in the queue.
      if round or group.state == 'unfinished' then leave[group.state](round, group) end
      samples = train_requests(group)
    else
      Counts.add_requests(tx, job, 'submitted', samples)
      Counts.add_requests(tx, job, 'trained', samples)
      Job.add(tx, job, 'submittedGroups', 1)
    end
    redis.call('ZADD', tx.key:trainedGroups(job), step, group_id)
    Job.add(tx, job, 'trainedGroups', 1)
    redis.call('HINCRBY', tx.key:jobLedger(job), 'reconciled.groups', 1)
    redis.call('HINCRBY', tx.key:jobLedger(job), 'reconciled.samples', samples)
    counted = counted + 1
  end

  if step then
    local open_id = Job.read_open_round(tx, job)
    local open = open_id and Round.load(tx, job, open_id)
    if open and open.step <= step then
      Rounds.cancel(tx, open, 'requeue', 'reconciled')
      cancelled = open_id
    end
    for _, group in ipairs(args.groups) do train(group.groupId, group.samples) end
    if args.isLast and Job.load(tx, job).stepsTrained < step then
      Job.set(tx, job, { stepsTrained = step })
      redis.call('UNLINK', tx.key:lengths(job, Format.integer(step - Lengths.HISTORY_STEPS)))
      Events.add(tx, 'job.reconciled', { job = job, step = step, trainedGroups = counted })
    end
  end

  local unknown = {}
  for _, group_id in ipairs(args.groupIds) do
    local is_known = Group.exists(tx, job, group_id)
      or redis.call('ZSCORE', tx.key:trainedGroups(job), group_id)
    if not is_known then table.insert(unknown, group_id) end
  end
  local known = Job.load(tx, job)
  return Generation.reply(tx, { trainerEpoch = epoch, stepsTrained = known.stepsTrained,
    submittedGroups = known.submittedGroups, openRoundId = known.openRoundId or nil, countedGroups = counted,
    cancelledRoundId = cancelled, unknown = unknown, aborts = aborts })
end

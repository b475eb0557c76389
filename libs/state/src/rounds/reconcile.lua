--[[ A trainer says what Redis has lost. `groups` it has trained in a step that Redis does not count as trained: each is
taken out of wherever it is, its holders are stopped, and it counts as trained once, known or not. A round that is not
closed and is of that step or an earlier one is given up: its other groups go to the long-tail queue. With the last page
the step counts as trained. `groupIds` are looked up. What is said again changes nothing.
ARGV[1] JSON:
  job            string
  trainerEpoch   of the trainer; absent for a job that Redis has lost as a whole: it is made anew
  takeoverId     string, without trainerEpoch: a repeat of the call that made the job gets the same epoch
  newEpoch       string: the epoch of a job that is made anew
  stamp          of the last reply, or absent
  step           number, or absent without groups
  groups         list of {groupId, samples}, about 128 requests in all
  isLast         boolean: all groups of the step have been named
  groupIds       list of groupId, at most 1024
Reply: trainerEpoch, stepsTrained, submittedGroups
       openRoundId      the round that is not closed, or absent
       countedGroups    number of groups that count as trained from now on
       unknown          list of those of groupIds that Redis does not know: they are to be submitted again
       cancelledRoundId the round that was given up, or absent
       aborts           list of {requestId, attempt, workerId, workerEpoch}
       stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, RESTORE_UNFINISHED. Events: job.reconciled, round.cancelled,
round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local job, hash, step = args.job, tx.key:job(args.job), Reply.optional(args.step)
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp))
  if refused then return refused end
  local epoch = Reply.optional(args.trainerEpoch)
  if not epoch and redis.call('EXISTS', hash) == 0 then
    epoch = args.newEpoch
    redis.call('SADD', tx.key.jobs, job)
    redis.call('HSET', hash, 'stepsTrained', 0)
    Takeovers.begin_epoch(tx, job, args.takeoverId, epoch)
  end
  epoch = epoch or Takeovers.epoch_of_takeover(tx, job, args.takeoverId)
  refused = Trainer.error(tx, job, epoch)
  if refused then return refused end
  if redis.call('HEXISTS', hash, 'restoring') == 1 then
    return Reply.fail('RESTORE_UNFINISHED', 'The job is being restored; repeat job.restore', 'job', 50)
  end
  Trainer.seen(tx, job)

  local aborts, counted, cancelled = {}, 0, nil

  -- What a round that is not open has left to do.
  local function review_left(round)
    if Rounds.takes_results(round) then return Rounds.review_round(tx, round) end
    if round.cancelMode ~= 'drop' then Counts.add_settling(tx, job, -1) end
    if round.live == 0 then Rounds.mark_settled(tx, round) end
  end

  local function leave_accepted(round, group)
    redis.call('LREM', tx.key:roundAccepted(job, round.roundId), 1, group.groupId)
    redis.call('UNLINK', tx.key:roundDigests(job, round.roundId))
    if round.state == 'cancelled' then
      -- It was to be given back.
      round.live = Rounds.bump(tx, round, 'liveGroups', -1)
      return review_left(round)
    end
    round.accepted = Rounds.bump(tx, round, 'acceptedGroups', -1)
    Rounds.bump(tx, round, 'acceptedRequests', -group.samples)
    Rounds.review_round(tx, round)
  end

  local leave = {
    live = function(round, group)
      Rounds.leave(tx, round, group)
      review_left(round)
    end,
    accepted = leave_accepted,
    leaving = function(round, group)
      Counts.add_settling(tx, job, -1)
      Longtail.forget_leaving(tx, round, group)
    end,
    unfinished = function(_, group) Longtail.leave(tx, job, group.groupId) end,
    failed = function(round, group)
      redis.call('LREM', tx.key:roundFailed(job, round.roundId), 1, group.groupId)
      Counts.add(tx, hash, job, 'failedGroups', -1)
    end,
  }
  local function leave_dropped_groups(_, group)
    redis.call('ZREM', tx.key.abortingGroups, job .. '/' .. group.groupId)
    redis.call('ZREM', tx.key.droppedGroups, job .. '/' .. group.groupId)
    Counts.add(tx, hash, job, 'droppedGroups', -1)
  end
  leave.aborting, leave.dropped = leave_dropped_groups, leave_dropped_groups

  -- As many requests as the group needs count as trained, the finished ones first; the others are surplus. Returns how
  -- many those are, and the references of all.
  local function train_requests(group)
    local requests, refs, wanted = {}, {}, group.samples
    for index = 0, group.launched - 1 do
      local request = Requests.load(tx, Requests.id_of(job, group.groupId, index))
      if request then table.insert(requests, request.state == 'finished' and 1 or #requests + 1, request) end
    end
    for _, request in ipairs(requests) do
      if Requests.HELD[request.state] then
        table.insert(aborts, { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
          workerEpoch = request.workerEpoch })
      end
      KeptTokens.keep(tx, request, nil, 0)
      for _, segment in ipairs(cjson.decode(request.segments)) do table.insert(refs, segment.ref) end
      if wanted > 0 then
        Requests.move(tx, request, group, 'trained')
        wanted = wanted - 1
      elseif request.state ~= 'dropped' and request.state ~= 'failed' then
        if request.tokens > 0 then Ledger.count(tx, job, group.roundId, 'waste.surplus', request.tokens) end
        Requests.move(tx, request, group, 'dropped')
      end
      redis.call('UNLINK', tx.key:request(request.id))
    end
    return group.samples - wanted, refs
  end

  local function train(group_id, samples)
    if redis.call('ZSCORE', tx.key:trainedGroups(job), group_id) then return end
    local group = Rounds.load_group(tx, job, group_id)
    local round = group and Rounds.load(tx, job, group.roundId)
    -- Closed, and about to be folded.
    if group and group.state == 'accepted' and round and round.state == 'closed' then return end
    if group then
      -- Without its round there is nothing it could leave but the queue.
      if round or group.state == 'unfinished' then leave[group.state](round, group) end
      local refs
      samples, refs = train_requests(group)
      redis.call('UNLINK', tx.key:group(job, group_id))
      KeptRefs.free_payloads_of(tx, job, group_id, group.promptRef, refs)
    else
      Counts.add_requests(tx, job, 'submitted', samples)
      Counts.add_requests(tx, job, 'trained', samples)
      redis.call('HINCRBY', hash, 'submittedGroups', 1)
    end
    redis.call('ZADD', tx.key:trainedGroups(job), step, group_id)
    redis.call('HINCRBY', hash, 'trainedGroups', 1)
    redis.call('HINCRBY', tx.key:jobLedger(job), 'reconciled.groups', 1)
    redis.call('HINCRBY', tx.key:jobLedger(job), 'reconciled.samples', samples)
    counted = counted + 1
  end

  if step then
    local open_id = redis.call('HGET', hash, 'openRoundId')
    local open = open_id and Rounds.load(tx, job, open_id)
    if open and open.step <= step then
      RoundCancellation.cancel(tx, open, 'requeue', 'reconciled')
      cancelled = open_id
    end
    for _, group in ipairs(args.groups) do train(group.groupId, group.samples) end
    if args.isLast and tonumber(redis.call('HGET', hash, 'stepsTrained') or 0) < step then
      redis.call('HSET', hash, 'stepsTrained', step)
      redis.call('UNLINK', tx.key:lengths(job, Format.integer(step - Lengths.HISTORY_STEPS)))
      Events.add(tx, 'job.reconciled', { job = job, step = step, trainedGroups = counted })
    end
  end

  local unknown = {}
  for _, group_id in ipairs(args.groupIds) do
    if redis.call('EXISTS', tx.key:group(job, group_id)) == 0 and not redis.call('ZSCORE', tx.key:trainedGroups(job),
      group_id) then
      table.insert(unknown, group_id)
    end
  end

  local field = redis.call('HMGET', hash, 'stepsTrained', 'submittedGroups', 'openRoundId')
  return Generation.stamped(tx, cjson.encode({
    trainerEpoch = epoch, stepsTrained = tonumber(field[1] or 0), submittedGroups = tonumber(field[2] or 0),
    openRoundId = field[3] or nil, countedGroups = counted, cancelledRoundId = cancelled,
  }):sub(1, -2) .. ',"unknown":' .. Reply.list(unknown) .. ',"aborts":' .. Reply.list(aborts) .. '}')
end

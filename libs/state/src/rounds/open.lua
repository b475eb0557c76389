--[[ Opens the round of the next step: in state `opening` while groups of the long-tail queue are taken, else `open`.
ARGV[1] JSON: {job, roundId, planId, kind, step, neededGroups, takeGroups, newGroups, orphanAfterMs, weightVersion,
  policy, deadlineMs, abortScope, priority, workerKind, digest, rules, maxReplacedGroups, keepTokens, places, choice,
  control, stamp, traceparent, trainerEpoch, newEpoch}: OpenScriptArgs. The same round opened with another digest is a
  conflict. Without a trainerEpoch the caller is a new trainer, and the trainer before is fenced. With a workerKind only
  workers of that kind get requests of the job
Reply: OpenRoundReply
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_CLOSED, ROUND_CANCELLED, PLAN_STALE,
  ROUND_SETTLING, RESTORE_UNFINISHED, JOB_IN_USE, WEIGHT_VERSION_MISMATCH. Events: round.opened. ]]
return function(tx, args)
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local known_job = Job.load(tx, args.job)
  local current, steps, open_round, settling =
    known_job.trainerEpoch, known_job.stepsTrained, known_job.openRoundId, known_job.settlingGroups
  local given = args.trainerEpoch

  if known_job.deleting then return Trainer.deleting() end
  if given and not current then return Trainer.no_job(args.job) end

  local function answer(state, taken, epoch)
    return Generation.reply(tx, { roundId = args.roundId, trainerEpoch = epoch, state = state, takenGroups = taken })
  end
  local known = Round.load(tx, args.job, args.roundId)
  if known then Round.read_rest(tx, known) end
  -- A caller without an epoch that repeats the call which opened this round is the trainer that has opened it.
  local speaker = given or (known and known.digest == args.digest and known.trainerEpoch) or current
  if speaker ~= current then return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch') end
  if known then
    if known.state == 'closed' then return Reply.fail('ROUND_CLOSED', 'The round is closed', 'roundId') end
    if known.state == 'cancelled' then
      return Reply.fail('ROUND_CANCELLED', 'The round was cancelled; open one with another roundId', 'roundId')
    end
    if known.digest ~= args.digest then
      return Reply.fail('ROUND_CONFLICT', 'The round was opened with other parameters', 'roundId')
    end
    return answer(known.state, known.takenGroups, current)
  end
  refused = Trainer.restore_error(tx, args.job)
  if refused then return refused end
  if open_round then
    return Reply.fail('ROUND_CONFLICT', 'Round ' .. open_round .. ' of the job is not closed', 'roundId')
  end
  if args.step ~= steps + 1 then
    return Reply.fail('PLAN_STALE', 'The job has trained ' .. Format.integer(steps) .. ' steps', 'step')
  end
  local pool_version = Weights.version(tx)
  local weight_version = args.weightVersion or pool_version
  if not Weights.is_version(tx, weight_version) then
    return Reply.fail('WEIGHT_VERSION_MISMATCH', 'The pool has weight version ' .. Format.integer(pool_version)
      .. ', and no segment of this round would have version ' .. Format.integer(weight_version), 'weightVersion', nil,
      { weightVersion = weight_version, poolWeightVersion = pool_version })
  end
  local rules = args.rules
  local has_pins = rules.maxCuts > 0 or rules.maxAgeSteps > 0 or rules.maxVersionSpan >= 0
  if has_pins and settling > 0 then
    return Reply.fail('ROUND_SETTLING', 'Cuts of groups that a bound may pin are still being confirmed', nil, 50)
  end
  local queued = redis.call('ZCARD', tx.key:longtail(args.job))
  if queued < args.takeGroups then
    if queued + settling >= args.takeGroups then
      return Reply.fail('ROUND_SETTLING', 'Cut requests of an earlier round are still being confirmed', nil, 50)
    end
    return Reply.fail('PLAN_STALE', 'The long-tail queue has ' .. Format.integer(queued) .. ' groups', 'takeGroups')
  end

  local policy = cjson.decode(args.policy).name
  local epoch, state = given or args.newEpoch, args.takeGroups > 0 and 'opening' or 'open'
  redis.call('SADD', tx.key.jobs, args.job)
  redis.call('SADD', tx.key.openJobs, args.job)
  Job.set(tx, args.job, { trainerEpoch = epoch, trainerSeenAtMs = tx.now, openRoundId = args.roundId,
    lastRoundId = args.roundId, orphanAfterMs = args.orphanAfterMs })
  ClaimTurns.set_kind(tx, args.job, args.workerKind)
  Round.create(tx, args.job, args.roundId, {
    state = state, planId = args.planId, digest = args.digest, kind = args.kind, step = args.step,
    neededGroups = args.neededGroups, newGroups = args.newGroups, takeGroups = args.takeGroups, takenGroups = 0,
    submittedGroups = 0, acceptedGroups = 0, acceptedRequests = 0, failedGroups = 0, liveGroups = 0,
    reservedGroups = 0, inFlight = 0, policy = args.policy, choice = args.choice,
    tailControl = args.control,
    records = policy == 'auto' or nil,
    shortfall = rules.acceptsFewer and 'accept-fewer' or 'replace', maxFailures = rules.maxFailures,
    maxReturns = rules.maxReturns, onCut = rules.onCut, reservesTaken = rules.reservesTaken or nil,
    concurrency = rules.concurrency, sampleOverProvision = rules.sampleOverProvision, maxCuts = rules.maxCuts,
    maxAgeSteps = rules.maxAgeSteps, maxVersionSpan = rules.maxVersionSpan, dispatchOrder = rules.dispatchOrder,
    equalRewards = rules.equalRewards ~= 'keep' and rules.equalRewards or nil,
    maxReplacedGroups = args.maxReplacedGroups, keepTokens = args.keepTokens, abortScope = args.abortScope,
    hasQuotas = args.places ~= nil or nil, traceparent = args.traceparent, priority = args.priority,
    weightVersion = weight_version,
    trainerEpoch = epoch, openedAtMs = tx.now })
  for _, one in ipairs(args.places or {}) do
    redis.call('HSET', tx.key:roundPlaces(args.job, args.roundId), one.domain, one.places)
  end
  redis.call('ZADD', tx.key:rounds(args.job), args.step, args.roundId)
  LostGroups.report_with(tx, args.job, args.roundId)
  local name = args.job .. '/' .. args.roundId
  if state == 'opening' then redis.call('SADD', tx.key.sweeps, name) end
  if args.deadlineMs then redis.call('ZADD', tx.key.roundDeadlines, tx.now + args.deadlineMs, name) end
  Events.add(tx, 'round.opened', { job = args.job, roundId = args.roundId, step = args.step, kind = args.kind,
    neededGroups = args.neededGroups, newGroups = args.newGroups, takeGroups = args.takeGroups,
    policy = policy })
  return answer(state, 0, epoch)
end

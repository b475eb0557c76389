--[[ Gives the job to a new trainer and fences the earlier trainer. A call that finds no job is remembered: its trainer
may create the job next, and a late copy of the call must not fence this trainer.
ARGV[1] JSON: {job, takeoverId, newEpoch}   strings; a takeoverId gets the same answer until another takeover
Reply: TakeoverRoundReply
Errors: JOB_NOT_FOUND, FENCED (another trainer has taken over, or the job was created, since). Events: job.taken-over.
Flags: allow-oom ]]
return function(tx, args)
  local MAX_EARLY, EARLY_KEPT_MS = 1000, 600000
  local known = Job.load(tx, args.job)
  local early, name = tx.key.earlyTakeovers, args.job .. '/' .. args.takeoverId
  if not known.trainerEpoch then
    redis.call('ZADD', early, Format.integer(tx.now), name)
    redis.call('ZREMRANGEBYRANK', early, 0, -MAX_EARLY - 1)
    redis.call('PEXPIRE', early, EARLY_KEPT_MS)
    -- By the stamp, the next call of this trainer learns whether Redis was restored with the job in between.
    return Trainer.no_job(args.job, { stamp = Generation.stamp(tx) })
  end
  local epoch = Trainer.epoch_of_takeover(tx, args.job, args.takeoverId)
  if epoch ~= known.trainerEpoch and (epoch or redis.call('ZSCORE', early, name)) then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'takeoverId')
  end
  if not epoch then
    epoch = args.newEpoch
    Trainer.begin_epoch(tx, args.job, args.takeoverId, epoch)
    Events.add(tx, 'job.taken-over', { job = args.job })
  end
  Trainer.seen(tx, args.job)
  local round = known.openRoundId and RoundStatus.json(tx, args.job, known.openRoundId) or nil
  return Generation.reply(tx, { trainerEpoch = epoch, stepsTrained = known.stepsTrained,
    submittedGroups = known.submittedGroups }, { round = round })
end

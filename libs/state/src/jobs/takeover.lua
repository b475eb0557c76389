--[[ Gives the job to a new trainer; the one before is fenced.
ARGV[1] JSON: {job, takeoverId, newEpoch}   strings; the same takeoverId gets the same answer until another takes over
Reply: TakeoverRoundReply
Errors: JOB_NOT_FOUND, FENCED (another one has taken over since). Events: job.taken-over.
Flags: allow-oom ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:job(args.job), 'trainerEpoch', 'stepsTrained', 'submittedGroups',
    'openRoundId')
  if not field[1] then return Trainer.no_job(args.job) end
  local epoch = Trainer.epoch_of_takeover(tx, args.job, args.takeoverId)
  if epoch and epoch ~= field[1] then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'takeoverId')
  end
  if not epoch then
    epoch = args.newEpoch
    Trainer.begin_epoch(tx, args.job, args.takeoverId, epoch)
    Events.add(tx, 'job.taken-over', { job = args.job })
  end
  Trainer.seen(tx, args.job)
  local round = field[4] and RoundStatus.json(tx, args.job, field[4]) or nil
  return Generation.reply(tx, { trainerEpoch = epoch, stepsTrained = tonumber(field[2] or 0),
    submittedGroups = tonumber(field[3] or 0) }, { round = round })
end

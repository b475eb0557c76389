--[[ Gives the job to a new trainer; the one before is fenced.
ARGV[1] JSON: {job, takeoverId, newEpoch}   strings; the same takeoverId gets the same answer until another takes over
Reply: trainerEpoch, stamp                           strings
       stepsTrained, submittedGroups                 numbers
       round                                         RoundStatus of the round that is not closed, or absent
Errors: JOB_NOT_FOUND, FENCED (another one has taken over since). Events: job.taken-over.
Flags: allow-oom ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:job(args.job), 'trainerEpoch', 'stepsTrained', 'submittedGroups',
    'openRoundId')
  if not field[1] then return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end
  local epoch = Takeovers.epoch_of_takeover(tx, args.job, args.takeoverId)
  if epoch and epoch ~= field[1] then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'takeoverId')
  end
  if not epoch then
    epoch = args.newEpoch
    Takeovers.begin_epoch(tx, args.job, args.takeoverId, epoch)
    Events.add(tx, 'job.taken-over', { job = args.job })
  end
  Trainer.seen(tx, args.job)
  local answer = cjson.encode({
    trainerEpoch = epoch, stepsTrained = tonumber(field[2] or 0), submittedGroups = tonumber(field[3] or 0),
  })
  if field[4] then answer = string.sub(answer, 1, -2) .. ',"round":' .. RoundStatus.json(tx, args.job, field[4])
    .. '}' end
  return Generation.stamped(tx, answer)
end

--[[ The state of one round of a job.
ARGV[1] JSON:
  job            string
  roundId        string or absent: the round that is not closed, or the last one
  trainerEpoch   string or absent: keeps the round from being orphaned
  stamp          of the trainer, or absent
Reply: RoundStatus of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Trainer.refusal(tx, args)
  if refused then return refused end
  if args.trainerEpoch then Trainer.seen(tx, args.job) end
  local field = redis.call('HMGET', tx.key:job(args.job), 'trainerEpoch', 'lastRoundId')
  if not field[1] then return Trainer.no_job(args.job) end
  -- A job that was made anew by a reconciliation has no round yet.
  local round_id = args.roundId or field[2] or ''
  local status = RoundStatus.json(tx, args.job, round_id)
  if not status then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. round_id, 'roundId') end
  return Generation.stamped(tx, status)
end

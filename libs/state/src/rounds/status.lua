--[[ The state of one round of a job.
ARGV[1] JSON: {job, roundId, trainerEpoch, stamp}: without roundId: the round that is not closed, or the last round
Reply: RoundStatus of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Trainer.refusal(tx, args)
  if refused then return refused end
  if args.trainerEpoch then Trainer.seen(tx, args.job) end
  local round_id, no_round = Trainer.named_round(tx, args.job, args.roundId)
  if not round_id then return no_round end
  return Generation.stamped(tx, RoundStatus.json(tx, args.job, round_id))
end

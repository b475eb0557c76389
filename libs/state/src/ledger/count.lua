--[[ Counts one page of the accepted groups of a completed round into its ledger and into the prompt memory, each once.
ARGV[1] JSON: {job, roundId}
Reply: more   false when all are counted, or there is nothing to count
Flags: allow-oom ]]
return function(tx, args)
  return Reply.object({ more = not TrainedLedger.count_accepted(tx, args.job, args.roundId) })
end

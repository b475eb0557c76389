--[[ The counts of a job.
ARGV[1] JSON: {job, stamp}   stamp of the trainer, or absent
Reply: JobStatus of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local known = Job.load(tx, args.job)
  if not known.trainerEpoch then return Trainer.no_job(args.job) end
  local counts, requests = Hashes.all(tx.key:counts(args.job)), {}
  for _, states in ipairs({ { 'submitted' }, Counts.KEPT, Counts.FOLDED }) do
    for _, state in ipairs(states) do requests[state] = tonumber(counts[state] or 0) end
  end
  return Generation.reply(tx, {
    job = args.job, trainerEpoch = known.trainerEpoch, stepsTrained = known.stepsTrained,
    submittedGroups = known.submittedGroups, trainedGroups = known.trainedGroups,
    excludedGroups = known.excludedGroups, failedGroups = known.failedGroups, droppedGroups = known.droppedGroups,
    openRoundId = known.openRoundId,
    longtail = { groups = redis.call('ZCARD', tx.key:longtail(args.job)), settlingGroups = known.settlingGroups },
    requests = requests,
  })
end

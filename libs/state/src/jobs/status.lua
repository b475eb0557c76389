--[[ The counts of a job.
ARGV[1] JSON: {job, stamp}   stamp of the trainer, or absent
Reply: JobStatus of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local field = redis.call('HMGET', tx.key:job(args.job), 'trainerEpoch', 'stepsTrained', 'submittedGroups',
    'trainedGroups', 'failedGroups', 'settlingGroups', 'openRoundId', 'droppedGroups',
    'excludedGroups')
  if not field[1] then return Trainer.no_job(args.job) end
  local counts, requests = Hashes.all(tx.key:counts(args.job)), {}
  for _, states in ipairs({ { 'submitted' }, Counts.KEPT, Counts.FOLDED }) do
    for _, state in ipairs(states) do requests[state] = tonumber(counts[state] or 0) end
  end
  return Generation.reply(tx, {
    job = args.job, trainerEpoch = field[1], stepsTrained = tonumber(field[2] or 0),
    submittedGroups = tonumber(field[3] or 0), trainedGroups = tonumber(field[4] or 0),
    excludedGroups = tonumber(field[9] or 0), failedGroups = tonumber(field[5] or 0),
    droppedGroups = tonumber(field[8] or 0), openRoundId = field[7] or nil,
    longtail = { groups = redis.call('ZCARD', tx.key:longtail(args.job)), settlingGroups = tonumber(field[6] or 0) },
    requests = requests,
  })
end

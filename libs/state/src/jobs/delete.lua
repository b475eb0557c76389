--[[ Deletes a job in steps. The first call takes the job out of every index of the pool. Then the caller scans for the
other keys of the job, deletes them, and calls with `finish`. Until then the job can open no round.
ARGV[1] JSON: {job, force, finish}   booleans
  force    also deletes a job with an open round; the caller cancels the round
  finish   the caller has deleted all other keys
Reply: state     'open' (a round is open: cancel it), 'settling' (requests are still being cut, dropped or folded),
                 'emptying' (delete its keys) or 'deleted'; a repeat gets the same state
       roundId   with 'open'
Errors: JOB_IN_USE.
Flags: allow-oom ]]
return function(tx, args)
  local job, known = args.job, Job.load(tx, args.job)
  if not Job.exists(tx, job) then
    -- A job that has never run may have a quota.
    redis.call('UNLINK', tx.key:jobQuota(job))
    return '{"state":"deleted"}'
  end
  if known.deleting then
    if not args.finish then return '{"state":"emptying"}' end
    Job.delete(tx, job)
    redis.call('UNLINK', tx.key:counts(job), tx.key:recount(job), tx.key:jobQuota(job))
    redis.call('SREM', tx.key.jobs, job)
    return '{"state":"deleted"}'
  end
  if known.openRoundId then
    if args.force then return cjson.encode({ state = 'open', roundId = known.openRoundId }) end
    return Reply.fail('JOB_IN_USE', 'Round ' .. known.openRoundId
      .. ' of the job is open; close or cancel it first, or use force', 'job')
  end
  if Snapshots.unrest_of(tx, job) then
    if args.force then return '{"state":"settling"}' end
    return Reply.fail('JOB_IN_USE', 'Requests of the job are still being cut, dropped or folded', 'job', 200)
  end
  ClaimTurns.forget(tx, job)
  Job.delete(tx, job)
  Job.set(tx, job, { deleting = true })
  redis.call('UNLINK', tx.key:pending(job), tx.key:longtail(job), tx.key:rounds(job))
  redis.call('SREM', tx.key.openJobs, job)
  redis.call('HDEL', tx.key.jobService, job)
  redis.call('HDEL', tx.key.blockedJobs, job)
  return '{"state":"emptying"}'
end

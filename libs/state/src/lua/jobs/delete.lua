--[[ Deletes a job, in steps. The first takes it out of every index of the pool, so that nobody meets it; its other keys are
deleted by the caller (by a scan, they are many), who then says `finish`. In between, no round of this job can be opened.
ARGV[1] JSON:
  job      string
  force    boolean: also while its round is open: the caller cancels that
  finish   boolean: all other keys are gone
Reply: state     'open' (a round is open: cancel it), 'settling' (something of it still moves), 'emptying' (delete its keys)
                 or 'deleted'; a repeat gets the same
       roundId   with 'open'
Errors: JOB_IN_USE. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/checkpoints"
local args = cjson.decode(ARGV[1])
local job, hash = args.job, key.job(args.job)
local field = redis.call('HMGET', hash, 'openRoundId', 'deleting')
if redis.call('EXISTS', hash) == 0 then return '{"state":"deleted"}' end
if field[2] then
  if not args.finish then return '{"state":"emptying"}' end
  redis.call('UNLINK', hash, key.books(job), key.recount(job), key.jobQuota(job))
  redis.call('SREM', key.jobs, job)
  return '{"state":"deleted"}'
end
if field[1] then
  if args.force then return cjson.encode({ state = 'open', roundId = field[1] }) end
  return fail('JOB_IN_USE', 'Round ' .. field[1] .. ' of the job is open; close or cancel it first, or use force', 'job')
end
if unrest_of(job) then
  if args.force then return '{"state":"settling"}' end
  return fail('JOB_IN_USE', 'Requests of the job are still being cut, dropped or folded', 'job', 200)
end
redis.call('UNLINK', hash, key.pending(job), key.longtail(job), key.rounds(job))
redis.call('HSET', hash, 'deleting', 1)
redis.call('ZREM', key.claimableJobs, job)
redis.call('SREM', key.withheldJobs, job)
redis.call('SREM', key.openJobs, job)
redis.call('HDEL', key.jobService, job)
redis.call('HDEL', key.blockedJobs, job)
return '{"state":"emptying"}'

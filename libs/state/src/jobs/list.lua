--[[ One page of the jobs of the pool, sorted; a scan (Pages.list). Writes nothing.
ARGV[1] JSON: {openOnly, idleBeforeMs, cursor, limit}
  openOnly       only jobs with a round that is not closed
  idleBeforeMs   number or absent: only jobs whose trainer has sent nothing since then, and jobs being deleted
Reply: ListJobsReply
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local page, cursor = Pages.list('SSCAN', args.openOnly and tx.key.openJobs or tx.key.jobs, args.cursor, PAGE,
    args.limit or PAGE)
  local function is_idle(job)
    local known = Job.load(tx, job)
    return known.deleting or (not known.openRoundId and known.trainerSeenAtMs < args.idleBeforeMs)
  end
  local jobs = {}
  for _, job in ipairs(page) do
    if not args.idleBeforeMs or is_idle(job) then table.insert(jobs, job) end
  end
  table.sort(jobs)
  return Reply.object({ jobs = jobs, cursor = cursor })
end

--[[ One page of the jobs of the pool; a scan: each one that is there all the time comes at least once. Writes nothing.
ARGV[1] JSON: {openOnly, idleBeforeMs, cursor}   openOnly: only those with a round that is not closed; idleBeforeMs:
number or absent: only those whose trainer was not heard of since then, and those being deleted; cursor: '0' to begin
Reply: jobs     list of string
       cursor   string, '0' at the end
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local page = redis.call('SSCAN', args.openOnly and tx.key.openJobs or tx.key.jobs, args.cursor, 'COUNT', PAGE)
  local function is_idle(job)
    local field = redis.call('HMGET', tx.key:job(job), 'trainerSeenAtMs', 'openRoundId', 'deleting')
    return field[3] or (not field[2] and tonumber(field[1] or 0) < args.idleBeforeMs)
  end
  local jobs = {}
  for _, job in ipairs(page[2]) do
    if not args.idleBeforeMs or is_idle(job) then table.insert(jobs, job) end
  end
  return Reply.object({ jobs = jobs, cursor = page[1] })
end

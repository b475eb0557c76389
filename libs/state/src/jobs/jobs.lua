-- What transitions need of a job, read once in each.
local Jobs = {}

function Tx.fields.known_jobs() return {} end

function Jobs.read(tx, job)
  local known = tx.known_jobs[job]
  if not known then
    local field = redis.call('HMGET', tx.key:job(job), 'abortedUpTo', 'abortedBy', 'trainerSeenAtMs', 'orphanAfterMs')
    known = { abortedUpTo = tonumber(field[1] or -1), abortedBy = field[2],
      orphanedAtMs = tonumber(field[3] or 0) + tonumber(field[4] or 0) }
    tx.known_jobs[job] = known
  end
  return known
end

return Jobs

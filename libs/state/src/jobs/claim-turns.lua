-- Turns of the jobs of a pool to give requests: start-time fair queueing. Every claim goes to the job with the least
-- service, and each request that a job gives adds 1 / weight to its service. A job that had no pending requests starts
-- again at the service of the latest turn (`servicePresent`). A job that may give no requests now (at its cap, blocked,
-- or orphaned) is withheld and delays no other job. Each kind of worker has a line of its own, with the jobs that name
-- the kind; a job without a kind is for built-in workers. The rule in TypeScript: lab/models/src/jobs.
local ClaimTurns = {}

local SERVICE_OF_ONE = 1048576 -- service that one request adds to a job of weight 1
ClaimTurns.DEFAULT_WEIGHT = 1
function Tx.fields.jobs_readmitted() return false end -- true: this script readmitted a job to its line

-- Line of the jobs for a kind of workers; `kind` is nil for built-in workers.
function ClaimTurns.line(tx, kind) return kind and tx.key:claimableOfKind(kind) or tx.key.claimableJobs end

local function line_of_job(tx, job) return ClaimTurns.line(tx, Job.get(tx, job).workerKind or nil) end

-- Puts a job with pending requests in its line.
function ClaimTurns.offer(tx, job)
  local line = line_of_job(tx, job)
  if redis.call('ZSCORE', line, job) then return end
  redis.call('SREM', tx.key.withheldJobs, job)
  local now = tonumber(redis.call('HGET', tx.key.meta, 'servicePresent') or 0)
  local service = math.max(now, tonumber(redis.call('HGET', tx.key.jobService, job) or 0))
  redis.call('ZADD', line, Format.integer(service), job)
end

function ClaimTurns.withhold(tx, job)
  redis.call('ZREM', line_of_job(tx, job), job)
  redis.call('SADD', tx.key.withheldJobs, job)
end

-- Takes a job that is deleted out of the lines.
function ClaimTurns.forget(tx, job)
  redis.call('ZREM', line_of_job(tx, job), job)
  redis.call('SREM', tx.key.withheldJobs, job)
end

-- Sets the kind of worker that the open round of the job names.
function ClaimTurns.set_kind(tx, job, kind)
  if (Job.get(tx, job).workerKind or nil) == kind then return end
  local was_offered = redis.call('ZREM', line_of_job(tx, job), job) == 1
  Job.set(tx, job, { workerKind = kind or false })
  if was_offered then ClaimTurns.offer(tx, job) end
end

-- Puts a withheld job back in its line. If the reason still holds, the next turn of the job withholds the job again.
function ClaimTurns.readmit(tx, job)
  if redis.call('SREM', tx.key.withheldJobs, job) == 0 then return end
  if redis.call('EXISTS', tx.key:pending(job)) == 1 then
    ClaimTurns.offer(tx, job)
    tx.jobs_readmitted = true
  end
end

-- The first job in the line of a kind of worker, and the service of the job; nil for an empty line. With `only`: this
-- job, if it is in line. A job out of its turn is charged as for a turn, and `servicePresent` stays the service of the
-- first job.
function ClaimTurns.next(tx, kind, only)
  local line = ClaimTurns.line(tx, kind)
  local turn = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')
  if not turn[1] then return nil end
  redis.call('HSET', tx.key.meta, 'servicePresent', turn[2])
  if not only or only == turn[1] then return turn[1], tonumber(turn[2]) end
  local service = redis.call('ZSCORE', line, only)
  if service then return only, tonumber(service) end
end

-- Weight of a job and the maximum of its requests that workers may have, nil for no bound; read once.
function Tx.fields.job_quotas() return {} end
local function quota_of(tx, job)
  local quota = tx.job_quotas[job]
  if not quota then
    local field = redis.call('HMGET', tx.key:jobQuota(job), 'weight', 'maxInFlight')
    quota = { weight = tonumber(field[1] or ClaimTurns.DEFAULT_WEIGHT), maxInFlight = tonumber(field[2] or nil) }
    tx.job_quotas[job] = quota
  end
  return quota
end

function ClaimTurns.charge(tx, job, service, given)
  local after = Format.integer(service + math.floor(given * SERVICE_OF_ONE / quota_of(tx, job).weight))
  redis.call('HSET', tx.key.jobService, job, after)
  if redis.call('EXISTS', tx.key:pending(job)) == 1 then
    redis.call('ZADD', line_of_job(tx, job), 'XX', after, job)
  else
    redis.call('ZREM', line_of_job(tx, job), job)
  end
end

function ClaimTurns.held_by_workers(tx, job)
  local held = redis.call('HMGET', tx.key:counts(job), 'claimed', 'running', 'cutting')
  return tonumber(held[1] or 0) + tonumber(held[2] or 0) + tonumber(held[3] or 0)
end

-- How many more requests of the job workers may have.
function ClaimTurns.room_of(tx, job)
  local cap = quota_of(tx, job).maxInFlight
  return cap and math.max(0, cap - ClaimTurns.held_by_workers(tx, job)) or math.huge
end

return ClaimTurns

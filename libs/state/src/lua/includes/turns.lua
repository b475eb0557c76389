--- @include "keys"
-- Whose turn it is to give requests: start-time fair queueing between the jobs of a pool. Every claim goes to the job
-- with the least service, and each request it gives adds 1 / weight to that; who comes back from having none begins at
-- the present. A job that may give nothing now (at its cap, or orphaned) waits aside and blocks nobody.
-- The same rule in TypeScript: libs/policies/src/jobs.
local SERVICE_OF_ONE = 1048576 -- of weight 1
local DEFAULT_WEIGHT = 1
local jobs_readmitted = false -- by this script: parked claims may be granted

-- It has pending requests.
local function offer_job(job)
  if redis.call('ZSCORE', key.claimableJobs, job) then return end
  redis.call('SREM', key.withheldJobs, job)
  local now = tonumber(redis.call('HGET', key.meta, 'servicePresent') or 0)
  local service = math.max(now, tonumber(redis.call('HGET', key.jobService, job) or 0))
  redis.call('ZADD', key.claimableJobs, string.format('%.0f', service), job)
end

local function withhold_job(job)
  redis.call('ZREM', key.claimableJobs, job)
  redis.call('SADD', key.withheldJobs, job)
end

-- What kept it aside may be over; if not, its next turn shows it.
local function readmit_job(job)
  if redis.call('SREM', key.withheldJobs, job) == 0 then return end
  if redis.call('EXISTS', key.pending(job)) == 1 then
    offer_job(job)
    jobs_readmitted = true
  end
end

-- The job whose turn it is, or nil. With `only`, that job out of its turn, when it is in line: it pays as for a turn, and
-- the present stays where the line is.
local function next_job(only)
  local turn = redis.call('ZRANGE', key.claimableJobs, 0, 0, 'WITHSCORES')
  if not turn[1] then return nil end
  redis.call('HSET', key.meta, 'servicePresent', turn[2])
  if not only then return turn[1], tonumber(turn[2]) end
  local service = redis.call('ZSCORE', key.claimableJobs, only)
  if service then return only, tonumber(service) end
end

local function charge_job(job, service, given)
  local weight = tonumber(redis.call('HGET', key.jobQuota(job), 'weight') or DEFAULT_WEIGHT)
  local after = string.format('%.0f', service + math.floor(given * SERVICE_OF_ONE / weight))
  redis.call('HSET', key.jobService, job, after)
  if redis.call('EXISTS', key.pending(job)) == 1 then
    redis.call('ZADD', key.claimableJobs, 'XX', after, job)
  else
    redis.call('ZREM', key.claimableJobs, job)
  end
end

local function held_by_workers(job)
  local held = redis.call('HMGET', key.books(job), 'claimed', 'running', 'cutting')
  return tonumber(held[1] or 0) + tonumber(held[2] or 0) + tonumber(held[3] or 0)
end

-- How many more requests workers may have of it.
local function room_of(job)
  local cap = tonumber(redis.call('HGET', key.jobQuota(job), 'maxInFlight') or nil)
  return cap and math.max(0, cap - held_by_workers(job)) or math.huge
end

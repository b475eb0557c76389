--- @include "keys"
--- @include "facts"
-- The counts of a job, its rounds and groups. None can be below zero: then Redis has lost something, the job is marked, and
-- upkeep counts it anew from its requests.
local function mark_miscount(job)
  redis.call('HINCRBY', key.meta, 'miscounts', 1)
  redis.call('SADD', key.miscountedJobs, job)
end

-- Changes a field of a hash of this job; returns what it is then.
local function count_in(hash, job, field, by)
  local count = redis.call('HINCRBY', hash, field, by)
  if count < 0 then mark_miscount(job) end
  return count
end

local function count_requests(job, state, by) count_in(key.books(job), job, state, by) end

-- A recount goes through the requests in pages. Those it has been to carry its id; what becomes of them since is counted
-- with it, so that in the end it is right whatever has moved.
local function count_again(request, from, to)
  local hash = key.recount(request.job)
  if not request.recount or redis.call('HGET', hash, 'id') ~= request.recount then return end
  redis.call('HINCRBY', hash, from, -1)
  redis.call('HINCRBY', hash, to, 1)
end

-- Groups on their way to the long-tail queue.
local function count_settling(job, by) count_in(key.job(job), job, 'settlingGroups', by) end

-- An index named it, and it is not there.
local function note_lost(job, id)
  redis.call('HINCRBY', key.meta, 'lostEntries', 1)
  fact('request.lost', { requestId = id })
  mark_miscount(job)
end

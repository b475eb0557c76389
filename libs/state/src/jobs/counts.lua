-- The requests of a job by state. A count below zero shows that Redis has lost a record (Job.mark_miscount).
local Counts = {}

-- KEPT: states whose requests are stored one by one. FOLDED: states whose requests may be folded into the counts.
Counts.KEPT = { 'pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished' }
Counts.FOLDED = { 'trained', 'failed', 'dropped' }

-- True when no recount of the job was started in this generation.
function Counts.is_recount_outdated(tx, job)
  return redis.call('HGET', tx.key:recount(job), 'generation') ~= Generation.current(tx)
end

function Counts.add_requests(tx, job, state, by)
  if redis.call('HINCRBY', tx.key:counts(job), state, by) < 0 then Job.mark_miscount(tx, job) end
end

-- Payload bytes to reserve for a sample: the mean maxTokens of the job's submitted requests, times `bytes_per_token`.
function Counts.sample_bytes(tx, job, bytes_per_token)
  local submitted = tonumber(redis.call('HGET', tx.key:counts(job), 'submitted') or 0)
  return submitted > 0 and Job.load(tx, job).submittedTokens / submitted * bytes_per_token or 0
end

-- A recount visits the requests in pages and marks each visited request with its id. A later change of a marked request
-- also changes the sums of the recount, so that the sums are right at the end.
function Counts.count_again(tx, request, from, to)
  local hash = tx.key:recount(request.job)
  if not request.recount or redis.call('HGET', hash, 'id') ~= request.recount then return end
  redis.call('HINCRBY', hash, from, -1)
  redis.call('HINCRBY', hash, to, 1)
end

-- Changes the number of groups on their way to the long-tail queue.
function Counts.add_settling(tx, job, by) Job.add(tx, job, 'settlingGroups', by) end

-- Notes a request or group that an index names but Redis has lost. Workers may have held lost requests, so the job may
-- now have room for more claims.
function Counts.note_lost(tx, job, id)
  ClaimTurns.readmit(tx, job)
  redis.call('HINCRBY', tx.key.meta, 'lostEntries', 1)
  Events.add(tx, 'request.lost', { requestId = id })
  Job.mark_miscount(tx, job)
end

return Counts

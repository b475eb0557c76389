-- The requests of a job by state. No count can be below zero: then Redis has lost something (Job.mark_miscount).
local Counts = {}

-- States whose requests are stored one by one, and those whose requests may be folded into the counts.
Counts.KEPT = { 'pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished' }
Counts.FOLDED = { 'trained', 'failed', 'dropped' }

-- There is no recount of the job that was begun in this generation.
function Counts.is_recount_outdated(tx, job)
  return redis.call('HGET', tx.key:recount(job), 'generation') ~= Generation.current(tx)
end

function Counts.add_requests(tx, job, state, by)
  if redis.call('HINCRBY', tx.key:counts(job), state, by) < 0 then Job.mark_miscount(tx, job) end
end

-- Bytes of payloads that a sample may take: its maxTokens, as they were submitted on average, at so many bytes.
function Counts.sample_bytes(tx, job, bytes_per_token)
  local submitted = tonumber(redis.call('HGET', tx.key:counts(job), 'submitted') or 0)
  return submitted > 0 and Job.load(tx, job).submittedTokens / submitted * bytes_per_token or 0
end

-- A recount goes through the requests in pages. Those it has been to carry its id; what becomes of them since is
-- counted with it, so that in the end it is right whatever has moved.
function Counts.count_again(tx, request, from, to)
  local hash = tx.key:recount(request.job)
  if not request.recount or redis.call('HGET', hash, 'id') ~= request.recount then return end
  redis.call('HINCRBY', hash, from, -1)
  redis.call('HINCRBY', hash, to, 1)
end

-- Groups on their way to the long-tail queue.
function Counts.add_settling(tx, job, by) Job.add(tx, job, 'settlingGroups', by) end

-- An index named it, and it is not there. A worker may have had it: others may have more.
function Counts.note_lost(tx, job, id)
  ClaimTurns.readmit(tx, job)
  redis.call('HINCRBY', tx.key.meta, 'lostEntries', 1)
  Events.add(tx, 'request.lost', { requestId = id })
  Job.mark_miscount(tx, job)
end

return Counts

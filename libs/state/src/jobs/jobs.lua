-- What transitions need of a job, read once in each.
local Jobs = {}

function Tx.fields.known_jobs() return {} end

function Jobs.read(tx, job)
  local known = tx.known_jobs[job]
  if not known then
    local field = redis.call('HMGET', tx.key:job(job), 'abortedUpTo', 'abortedBy', 'trainerSeenAtMs', 'orphanAfterMs',
      'workerKind')
    known = { abortedUpTo = tonumber(field[1] or -1), abortedBy = field[2],
      orphanedAtMs = tonumber(field[3] or 0) + tonumber(field[4] or 0), workerKind = field[5] or nil }
    tx.known_jobs[job] = known
  end
  return known
end

-- Bytes of payloads that a sample may take: its maxTokens, as they were submitted on average, at so many bytes.
function Jobs.sample_bytes(tx, job, bytes_per_token)
  local submitted = tonumber(redis.call('HGET', tx.key:counts(job), 'submitted') or 0)
  local tokens = tonumber(redis.call('HGET', tx.key:job(job), 'submittedTokens') or 0)
  return submitted > 0 and tokens / submitted * bytes_per_token or 0
end

return Jobs

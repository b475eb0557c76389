-- Bytes of payloads that a sample of a job may take: its maxTokens, as they were submitted on average, at so many
-- bytes.
local SampleBytes = {}

function SampleBytes.of(tx, job, bytes_per_token)
  local submitted = tonumber(redis.call('HGET', tx.key:counts(job), 'submitted') or 0)
  local tokens = tonumber(redis.call('HGET', tx.key:job(job), 'submittedTokens') or 0)
  return submitted > 0 and tokens / submitted * bytes_per_token or 0
end

return SampleBytes

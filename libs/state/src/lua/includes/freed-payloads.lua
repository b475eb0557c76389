--- @include "keys"
--- @include "clock"
-- Payloads are removed late: Redis may lose its last seconds, and then names again what it had freed. So a transition
-- that ends the last use of a payload only queues its reference, and upkeep removes it when the time of a loss is over.
local function free_payload(ref)
  redis.call('ZADD', key.freedPayloads, 'NX', string.format('%.0f', now_ms()), ref)
end

-- A prompt may be named by several groups, and by the saved groups of checkpoints: it is freed by the last one.
local function hold_prompt(job, ref)
  redis.call('HINCRBY', key.promptHolders(job), ref, 1)
  redis.call('ZREM', key.freedPayloads, ref)
  if redis.call('ZREM', key.awaitingPayloads, ref) == 0 then return end
  redis.call('HINCRBY', key.meta, 'awaitingBytes', '-' .. (redis.call('HGET', key.awaitingBytes, ref) or '0'))
  redis.call('HDEL', key.awaitingBytes, ref)
end

-- Somebody is about to name this prompt: it waits anew. False when it is being removed.
local function keep_freed(ref)
  local now = string.format('%.0f', now_ms())
  redis.call('ZADD', key.freedPayloads, 'XX', now, ref)
  if redis.call('ZSCORE', key.awaitingPayloads, ref) == '0' then return false end
  redis.call('ZADD', key.awaitingPayloads, 'XX', now, ref)
  return true
end

-- One whose count was lost is left to the sweep of orphans.
local function release_prompt(job, ref)
  if not ref or redis.call('HEXISTS', key.promptHolders(job), ref) == 0 then return end
  if redis.call('HINCRBY', key.promptHolders(job), ref, -1) > 0 then return end
  redis.call('HDEL', key.promptHolders(job), ref)
  free_payload(ref)
end

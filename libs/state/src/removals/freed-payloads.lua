-- Payloads are removed late: a Redis that has lost its last seconds names payloads again that it had freed. So a
-- transition that ends the last use of a payload only queues its reference, and upkeep removes the payload later, when
-- a loss can no longer restore a reference to it.
local FreedPayloads = {}

function FreedPayloads.free(tx, ref)
  redis.call('ZADD', tx.key.freedPayloads, 'NX', Format.integer(tx.now), ref)
end

function FreedPayloads.wait_no_more(tx, ref)
  if redis.call('ZREM', tx.key.awaitingPayloads, ref) == 0 then return end
  local bytes = redis.call('HGET', tx.key.awaitingBytes, ref)
  redis.call('HINCRBY', tx.key.meta, 'awaitingBytes', 0 - tonumber(bytes or 0))
  redis.call('HDEL', tx.key.awaitingBytes, ref)
end

-- Several groups, and the saved groups of snapshots, may name a prompt: the last of them frees the prompt.
function FreedPayloads.hold_prompt(tx, job, ref)
  redis.call('HINCRBY', tx.key:promptHolders(job), ref, 1)
  redis.call('ZREM', tx.key.freedPayloads, ref)
  FreedPayloads.wait_no_more(tx, ref)
end

-- Restarts the wait of a freed prompt that is about to be named. False when the prompt is being removed.
function FreedPayloads.keep_freed(tx, ref)
  local now = Format.integer(tx.now)
  redis.call('ZADD', tx.key.freedPayloads, 'XX', now, ref)
  if redis.call('ZSCORE', tx.key.awaitingPayloads, ref) == '0' then return false end
  redis.call('ZADD', tx.key.awaitingPayloads, 'XX', now, ref)
  return true
end

-- Ends one use of a prompt. A prompt without a count, which Redis has lost, is left to the sweep of orphans.
function FreedPayloads.release_prompt(tx, job, ref)
  if not ref or redis.call('HEXISTS', tx.key:promptHolders(job), ref) == 0 then return end
  if redis.call('HINCRBY', tx.key:promptHolders(job), ref, -1) > 0 then return end
  redis.call('HDEL', tx.key:promptHolders(job), ref)
  FreedPayloads.free(tx, ref)
end

return FreedPayloads

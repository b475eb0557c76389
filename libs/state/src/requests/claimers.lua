-- Kinds of workers that claim requests: for each kind the workers that have claimed last. A worker counts as long as
-- its epoch lives.
local Claimers = {}

local MAX_KEPT, MAX_READ, MAX_KINDS = 128, 16, 64

-- `kind`: nil for a built-in worker.
function Claimers.note(tx, kind, worker_id)
  local claimers = tx.key:claimers(kind or '')
  if redis.call('ZADD', claimers, tx.now_text, worker_id) == 0 then return end
  redis.call('ZREMRANGEBYRANK', claimers, 0, -MAX_KEPT - 1)
  if redis.call('SCARD', tx.key.claimKinds) < MAX_KINDS then redis.call('SADD', tx.key.claimKinds, kind or '') end
end

function Claimers.has(tx, kind)
  local claimers = tx.key:claimers(kind or '')
  for _, worker_id in ipairs(redis.call('ZREVRANGE', claimers, 0, MAX_READ - 1)) do
    if redis.call('HEXISTS', tx.key:worker(worker_id), 'liveEpoch') == 1 then return true end
    redis.call('ZREM', claimers, worker_id)
  end
  return false
end

-- The kinds with a live worker; '' for built-in workers.
function Claimers.kinds(tx)
  local kinds = {}
  for _, kind in ipairs(redis.call('SMEMBERS', tx.key.claimKinds)) do
    if Claimers.has(tx, kind) then table.insert(kinds, kind) else redis.call('SREM', tx.key.claimKinds, kind) end
  end
  table.sort(kinds)
  return kinds
end

return Claimers

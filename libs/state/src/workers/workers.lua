-- Epochs of workers. After an epoch has expired, the load-balancer returns its leases, and the trainer-coordinator its
-- attempts.
local Workers = {}

-- Maximum former registrations of a worker, kept so that late repeats are known.
local FORMER_KEPT = 8
local FORMER_KEPT_S = 86400

local function former_of(tx, worker_id)
  -- Older versions wrote 1 instead of a list.
  local text = redis.call('GET', tx.key:formerWorker(worker_id))
  local former = text and cjson.decode(text)
  return type(former) == 'table' and former or {}
end

-- Whether an earlier epoch of the worker was given to this registration.
function Workers.was_registered(tx, worker_id, registration_id)
  for _, former in ipairs(former_of(tx, worker_id)) do
    if former == registration_id then return true end
  end
  return false
end

function Workers.expire_epoch(tx, worker_id, epoch)
  local owner = 'worker:' .. worker_id .. ':' .. epoch
  redis.call('SADD', tx.key.expiredLeaseEpochs, owner)
  redis.call('SADD', tx.key.expiredAttemptEpochs, owner)
  local former = former_of(tx, worker_id)
  table.insert(former, redis.call('HGET', tx.key:worker(worker_id), 'registrationId') or nil)
  if #former > FORMER_KEPT then table.remove(former, 1) end
  redis.call('DEL', tx.key:worker(worker_id))
  redis.call('SET', tx.key:formerWorker(worker_id), cjson.encode(former), 'EX', FORMER_KEPT_S)
  redis.call('ZREM', tx.key.workers, worker_id)
end

function Workers.keep(tx, worker_id, ttl_ms, now)
  redis.call('ZADD', tx.key.workers, Format.integer(now + ttl_ms), worker_id)
end

return Workers

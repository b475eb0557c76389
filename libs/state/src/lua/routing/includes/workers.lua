--- @include "../../includes/keys"
--- @include "../../includes/worker-fence"
-- The epoch counts no more. Each app returns what it indexes: leases here, attempts the trainer-coordinator.
local function void_worker_epoch(worker_id, epoch)
  local owner = 'worker:' .. worker_id .. ':' .. epoch
  redis.call('SADD', key.voidLeaseEpochs, owner)
  redis.call('SADD', key.voidAttemptEpochs, owner)
  redis.call('DEL', key.worker(worker_id))
  redis.call('SET', key.formerWorker(worker_id), '1', 'EX', 86400)
  redis.call('ZREM', key.workers, worker_id)
end

local function keep_worker(worker_id, ttl_ms, now)
  redis.call('ZADD', key.workers, string.format('%.0f', now + ttl_ms), worker_id)
end

-- The epoch counts no more. Each app returns what it indexes: leases here, attempts the trainer-coordinator.
local Workers = {}

function Workers.expire_epoch(tx, worker_id, epoch)
  local owner = 'worker:' .. worker_id .. ':' .. epoch
  redis.call('SADD', tx.key.expiredLeaseEpochs, owner)
  redis.call('SADD', tx.key.expiredAttemptEpochs, owner)
  redis.call('DEL', tx.key:worker(worker_id))
  redis.call('SET', tx.key:formerWorker(worker_id), '1', 'EX', 86400)
  redis.call('ZREM', tx.key.workers, worker_id)
end

function Workers.keep(tx, worker_id, ttl_ms, now)
  redis.call('ZADD', tx.key.workers, Format.integer(now + ttl_ms), worker_id)
end

return Workers

-- Fence of worker epochs: an epoch is current until it expires or the worker registers again. A deregistered or expired
-- worker has no `liveEpoch`; only a registration gives it a new epoch.
local WorkerFence = {}

function WorkerFence.is_current(tx, worker_id, worker_epoch)
  return redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch') == worker_epoch
end

-- The live epoch of a worker, or nil and the error to answer.
function WorkerFence.live_epoch(tx, worker_id)
  local epoch = redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch')
  if epoch then return epoch end
  return nil, Reply.fail('WORKER_NOT_FOUND', 'The worker ' .. worker_id .. ' has no live epoch', 'workerId')
end

-- The error for an epoch that is not current: code, message and field. A worker id without a registration in the last
-- day gets another error than an expired epoch, because the id may be misspelt, or Redis is new.
function WorkerFence.expired_worker(tx, worker_id)
  if redis.call('EXISTS', tx.key:worker(worker_id), tx.key:formerWorker(worker_id)) > 0 then
    return 'FENCED', 'The worker epoch has expired; register again', 'workerEpoch'
  end
  return 'WORKER_NOT_FOUND', 'No worker ' .. worker_id .. ' is registered in this pool; register it', 'workerId'
end

return WorkerFence

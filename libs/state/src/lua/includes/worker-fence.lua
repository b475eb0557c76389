--- @include "keys"
-- True while this worker epoch is the current one and not void.
-- A deregistered or expired worker has no `liveEpoch`; only a registration gives it a new one.
local function worker_is_current(worker_id, worker_epoch)
  return redis.call('HGET', key.worker(worker_id), 'liveEpoch') == worker_epoch
end

-- What to answer when it is not: code, message and field. A worker id that was never registered, or not for a day, is
-- told from an epoch that is over: it may be misspelt, or Redis is new.
local function void_worker(worker_id)
  if redis.call('EXISTS', key.worker(worker_id), key.formerWorker(worker_id)) > 0 then
    return 'FENCED', 'The worker epoch is void; register anew', 'workerEpoch'
  end
  return 'WORKER_NOT_FOUND', 'No worker ' .. worker_id .. ' is registered in this pool; register it', 'workerId'
end

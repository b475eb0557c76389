--- @include "keys"
-- True while this worker epoch is the current one and not void.
-- A deregistered or expired worker has no `liveEpoch`; only a registration gives it a new one.
local function worker_is_current(worker_id, worker_epoch)
  return redis.call('HGET', key.worker(worker_id), 'liveEpoch') == worker_epoch
end

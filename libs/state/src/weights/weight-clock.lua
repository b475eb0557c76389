-- Orders the reports of weights and the begins of their changes: the time of the pool, but later than that of the
-- report or begin before, which may have come in the same millisecond. After a Redis that lost its last writes no value
-- comes back.
local WeightClock = {}

-- As text: whole milliseconds.
function WeightClock.next(tx)
  local before = tonumber(redis.call('HGET', tx.key.weights, 'clockMs') or nil) or 0
  local now = Format.integer(math.max(tx.now, before + 1))
  redis.call('HSET', tx.key.weights, 'clockMs', now)
  return now
end

return WeightClock

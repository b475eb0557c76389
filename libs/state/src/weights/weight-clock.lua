-- Orders the reports of weights and the starts of weight changes: the time of the pool, but later than the previous
-- value even in the same millisecond. No value is given twice, even after Redis has lost its last writes.
local WeightClock = {}

-- The next value: whole milliseconds, as text.
function WeightClock.next(tx)
  local before = tonumber(redis.call('HGET', tx.key.weights, 'clockMs') or nil) or 0
  local now = Format.integer(math.max(tx.now, before + 1))
  redis.call('HSET', tx.key.weights, 'clockMs', now)
  return now
end

return WeightClock

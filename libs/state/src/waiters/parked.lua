-- Parked acquires. Waiter: JSON of the item with replyTo, parkedAtMs, deadlineMs, lane, place, score. A lane is ordered
-- by priority, then turn, then arrival; each waiter gets exactly one answer, made in the script that takes it out.
-- Fairness (start-time fair queueing): the waiters of one worker and priority have places one after the other, four to
-- a turn; a new worker starts at the place reached, so a burst of one worker is never ahead of the other workers.
-- An acquireId whose lease must never be granted has a tombstone under `released`: `!`, or `!` and an error code.
local Parked = {}

Parked.TOMBSTONE = '!'
Parked.ABORTED_TOMBSTONE = '!ABORTED'
Parked.TOMBSTONE_MS = 120000

-- The error of a tombstone; nil when `past` is no tombstone.
function Parked.tombstone_error(past)
  local code = past and string.match(past, '^!(.*)$')
  return code and (code ~= '' and code or 'RELEASED')
end

function Parked.get(tx, acquire_id)
  local packed = redis.call('HGET', tx.key.acquireWaiters, acquire_id)
  return packed and cjson.decode(packed) or nil
end

function Tx.fields.has_waiters(tx) return redis.call('EXISTS', tx.key.acquireWaiters) == 1 end

function Parked.save(tx, waiter)
  tx.has_waiters = true
  redis.call('HSET', tx.key.acquireWaiters, waiter.acquireId, cjson.encode(waiter))
  redis.call('ZADD', tx.key:serverLane(waiter.lane), waiter.score, waiter.acquireId)
  redis.call('ZADD', tx.key.acquireDeadlines, Format.integer(waiter.deadlineMs), waiter.acquireId)
  if not string.find(waiter.lane, '^[*@]') then redis.call('SADD', tx.key.sessionLanes, waiter.lane) end
end

local PLACES_PER_TURN = 4
local ARRIVAL_UNIT = 262144 -- 2^18 arrivals are ordered within a turn
local PRIORITY_UNIT = 562949953421312 -- 2^49: 2^31 turns per priority class, ten classes within 2^53

local function priority_of(waiter)
  return waiter.priority or 5
end

-- Sets the place and the score of a new waiter.
function Parked.take_place(tx, waiter)
  local turns = tx.key:acquireTurns(priority_of(waiter))
  local in_hand = tonumber(redis.call('ZSCORE', turns, '') or 0)
  local own = tonumber(redis.call('ZSCORE', turns, waiter.workerId) or 0)
  waiter.place = math.max(in_hand, own)
  redis.call('ZADD', turns, waiter.place + 1, waiter.workerId)
  local arrival = redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1) % ARRIVAL_UNIT
  local turn = math.floor(waiter.place / PLACES_PER_TURN)
  -- The score is a text, because a number in JSON has only 14 digits.
  waiter.score = Format.integer((9 - priority_of(waiter)) * PRIORITY_UNIT + turn * ARRIVAL_UNIT + arrival)
end

-- A granted waiter moves the place reached on; a waiter that left without a grant gives its place back to its worker.
local function leave_place(tx, waiter, granted)
  if redis.call('HLEN', tx.key.acquireWaiters) == 0 then
    for priority = 0, 9 do redis.call('DEL', tx.key:acquireTurns(priority)) end
    return
  end
  local turns = tx.key:acquireTurns(priority_of(waiter))
  local in_hand = tonumber(redis.call('ZSCORE', turns, '') or 0)
  if granted then
    if waiter.place <= in_hand then return end
    redis.call('ZADD', turns, waiter.place, '')
    redis.call('ZREMRANGEBYSCORE', turns, '-inf', '(' .. Format.integer(waiter.place))
  else
    local own = tonumber(redis.call('ZSCORE', turns, waiter.workerId) or 0)
    if own > in_hand then redis.call('ZADD', turns, own - 1, waiter.workerId) end
  end
end

function Parked.remove(tx, waiter, granted)
  redis.call('HDEL', tx.key.acquireWaiters, waiter.acquireId)
  redis.call('ZREM', tx.key:serverLane(waiter.lane), waiter.acquireId)
  redis.call('ZREM', tx.key.acquireDeadlines, waiter.acquireId)
  leave_place(tx, waiter, granted)
end

return Parked

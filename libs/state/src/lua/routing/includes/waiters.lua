--- @include "choose"
--- @include "../../includes/waiting-clock"
-- Parked acquires. Waiter: JSON of the item with replyTo, deadlineMs, lane, place and score. A lane is ordered by
-- priority, then turn, then arrival; each waiter gets exactly one answer, made in the script that takes it out.
-- Fairness (start-time fair queueing): the waiters of one worker and priority have places one after the other, four to
-- a turn; a worker that comes new begins at the turn in hand, so a burst of one is never ahead of the rest.
local GRANTS_PER_SCRIPT = 128
local SERVERS_LOOKED_AT = 64
local PLACES_PER_TURN = 4
local ARRIVAL_UNIT = 262144 -- 2^18 arrivals are told apart within a turn
local PRIORITY_UNIT = 562949953421312 -- 2^49: 2^31 turns per priority class, ten classes within 2^53

local function waiter_of(acquire_id)
  local packed = redis.call('HGET', key.acquireWaiters, acquire_id)
  return packed and cjson.decode(packed) or nil
end

local function save_waiter(waiter)
  redis.call('HSET', key.acquireWaiters, waiter.acquireId, cjson.encode(waiter))
  redis.call('ZADD', key.serverLane(waiter.lane), waiter.score, waiter.acquireId)
  redis.call('ZADD', key.acquireDeadlines, string.format('%.0f', waiter.deadlineMs), waiter.acquireId)
end

local function priority_of(waiter)
  return waiter.priority or 5
end

local function take_place(waiter)
  local turns = key.acquireTurns(priority_of(waiter))
  local in_hand = tonumber(redis.call('ZSCORE', turns, '') or 0)
  local own = tonumber(redis.call('ZSCORE', turns, waiter.workerId) or 0)
  local place = math.max(in_hand, own)
  redis.call('ZADD', turns, place + 1, waiter.workerId)
  return place
end

-- A granted waiter moves the turn in hand; one that left otherwise gives its place back to its worker.
local function leave_place(waiter, granted)
  if redis.call('HLEN', key.acquireWaiters) == 0 then
    for priority = 0, 9 do redis.call('DEL', key.acquireTurns(priority)) end
    return
  end
  local turns = key.acquireTurns(priority_of(waiter))
  local in_hand = tonumber(redis.call('ZSCORE', turns, '') or 0)
  if granted then
    if waiter.place <= in_hand then return end
    redis.call('ZADD', turns, waiter.place, '')
    redis.call('ZREMRANGEBYSCORE', turns, '-inf', '(' .. string.format('%.0f', waiter.place))
  else
    local own = tonumber(redis.call('ZSCORE', turns, waiter.workerId) or 0)
    if own > in_hand then redis.call('ZADD', turns, own - 1, waiter.workerId) end
  end
end

local function park(item, lane, now)
  item.lane = lane
  item.deadlineMs = waiting_ms(now) + item.waitMs
  item.place = take_place(item)
  local arrival = redis.call('HINCRBY', key.meta, 'arrivalSequence', 1) % ARRIVAL_UNIT
  local turn = math.floor(item.place / PLACES_PER_TURN)
  -- As text: a number of JSON has 14 digits.
  item.score = string.format('%.0f', (9 - priority_of(item)) * PRIORITY_UNIT + turn * ARRIVAL_UNIT + arrival)
  save_waiter(item)
end

local function remove_waiter(waiter, granted)
  redis.call('HDEL', key.acquireWaiters, waiter.acquireId)
  redis.call('ZREM', key.serverLane(waiter.lane), waiter.acquireId)
  redis.call('ZREM', key.acquireDeadlines, waiter.acquireId)
  leave_place(waiter, granted)
end

-- As choose_server, but nobody is let in while the pool is paused or at its own bound.
local function place_of(item)
  if not pool_takes_leases() then return nil, nil, '*' end
  return choose_server(item)
end

-- Why a waiter cannot be granted any more, or nil.
local function waiter_error(waiter, now)
  if not is_current_worker(waiter.workerId, waiter.workerEpoch) then return 'FENCED' end
  if waiter.deadlineMs > waiting_ms(now) then return nil end
  if pool_is_paused() then return 'POOL_PAUSED' end
  return redis.call('SCARD', key.usableServers) > 0 and 'WAIT_TIMEOUT' or 'NO_SERVER_AVAILABLE'
end

-- Answers the waiter if it can be granted or never will be; else puts it into the lane it belongs to now.
-- True when it left the lane it stood in.
local function settle_waiter(waiter, now, most_sessions, answers, servers)
  local code = waiter_error(waiter, now)
  if code then
    remove_waiter(waiter)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = code })
    return true
  end
  local server, _, lane = place_of(waiter)
  if server then
    remove_waiter(waiter, true)
    local answer = lease_answer(grant_lease(waiter, server, now, most_sessions), 'waited', servers)
    answer.acquireId = waiter.acquireId
    answer.replyTo = waiter.replyTo
    table.insert(answers, answer)
    return true
  end
  if lane == waiter.lane then return false end
  redis.call('ZREM', key.serverLane(waiter.lane), waiter.acquireId)
  waiter.lane = lane
  save_waiter(waiter)
  return true
end

-- The waiter that is next in one of the lanes this server may serve.
local function first_waiter_for(server)
  local best, best_score
  for _, lane in ipairs(lanes_for(server)) do
    local head = redis.call('ZRANGE', key.serverLane(lane), 0, 0, 'WITHSCORES')
    if head[1] and (best == nil or tonumber(head[2]) < best_score) then
      best, best_score = head[1], tonumber(head[2])
    end
  end
  return best and waiter_of(best)
end

-- Grants waiters while these servers and the pool have room; true when the bound of one script was reached first.
local function grant_waiters(server_ids, now, most_sessions, answers, servers)
  if redis.call('HLEN', key.acquireWaiters) == 0 or not pool_takes_leases() then return false end
  -- Room of the pool can be used on any server, not only on that which made it.
  if setting('poolMaxInflight') then
    write_scores()
    server_ids = redis.call('ZRANGE', key.eligible, 0, SERVERS_LOOKED_AT - 1)
  end
  table.sort(server_ids)
  local steps = 0
  for _, id in ipairs(server_ids) do
    local server = server_of(id)
    while server and has_room(server) and pool_takes_leases() do
      if steps >= GRANTS_PER_SCRIPT then return true end
      steps = steps + 1
      local waiter = first_waiter_for(server)
      if not waiter or not settle_waiter(waiter, now, most_sessions, answers, servers) then break end
    end
  end
  return false
end

--- @include "choose"
-- Parked acquires. Waiter: JSON of the item with replyTo, deadlineMs, lane and score. A lane is ordered by priority,
-- then arrival; each waiter gets exactly one answer, made in the script that takes it out.
local GRANTS_PER_SCRIPT = 128
local PRIORITY_UNIT = 10000000000000 -- 1e13 arrivals per priority class

local function waiter_of(acquire_id)
  local packed = redis.call('HGET', key.acquireWaiters, acquire_id)
  return packed and cjson.decode(packed) or nil
end

local function save_waiter(waiter)
  redis.call('HSET', key.acquireWaiters, waiter.acquireId, cjson.encode(waiter))
  redis.call('ZADD', key.serverLane(waiter.lane), string.format('%.0f', waiter.score), waiter.acquireId)
  redis.call('ZADD', key.acquireDeadlines, string.format('%.0f', waiter.deadlineMs), waiter.acquireId)
end

local function park(item, lane, now)
  item.lane = lane
  item.deadlineMs = now + item.waitMs
  item.score = (9 - (item.priority or 5)) * PRIORITY_UNIT + redis.call('HINCRBY', key.meta, 'arrivalSequence', 1)
  save_waiter(item)
end

local function remove_waiter(waiter)
  redis.call('HDEL', key.acquireWaiters, waiter.acquireId)
  redis.call('ZREM', key.serverLane(waiter.lane), waiter.acquireId)
  redis.call('ZREM', key.acquireDeadlines, waiter.acquireId)
end

-- Why a waiter cannot be granted any more, or nil.
local function waiter_error(waiter, now)
  if not is_current_worker(waiter.workerId, waiter.workerEpoch) then return 'FENCED' end
  if waiter.deadlineMs > now then return nil end
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
  local server, _, lane = choose_server(waiter)
  if server then
    remove_waiter(waiter)
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
  for _, lane in ipairs({ server.id, '*', string.format('@%.0f', server.weightVersion) }) do
    local head = redis.call('ZRANGE', key.serverLane(lane), 0, 0, 'WITHSCORES')
    if head[1] and (best == nil or tonumber(head[2]) < best_score) then
      best, best_score = head[1], tonumber(head[2])
    end
  end
  return best and waiter_of(best)
end

-- Grants waiters while these servers have room; true when the bound of one script was reached first.
local function grant_waiters(server_ids, now, most_sessions, answers, servers)
  if #server_ids == 0 or redis.call('HLEN', key.acquireWaiters) == 0 then return false end
  table.sort(server_ids)
  local steps = 0
  for _, id in ipairs(server_ids) do
    local server = server_of(id)
    while server and has_room(server) do
      if steps >= GRANTS_PER_SCRIPT then return true end
      steps = steps + 1
      local waiter = first_waiter_for(server)
      if not waiter or not settle_waiter(waiter, now, most_sessions, answers, servers) then break end
    end
  end
  return false
end

--- @include "choose"
--- @include "parked"
-- Who of the parked acquires is next, and what becomes of them.
local WORK_PER_SCRIPT = 128 -- waiters looked at; each may be restricted, and a lease is some four looks
local WORK_OF_A_GRANT = 4
local SERVERS_LOOKED_AT = 64
local LANES_LOOKED_AT, WAITERS_LOOKED_AT = 64, 8 -- of sessions that may leave a full server

local function park(item, lane, now)
  item.lane = lane
  item.deadlineMs = now + item.waitMs
  take_place(item)
  save_waiter(item)
end

-- As choose_server, but nobody is let in while the pool is paused or at its own bound.
local function place_of(item)
  if not pool_takes_leases() then return nil, nil, '*' end
  return choose_server(item)
end

-- Why nothing is granted for this now: code and reason (UNSERVED_REASONS of libs/contracts).
local function obstacle_of(item)
  if pool_is_paused() then return 'POOL_PAUSED', setting('syncing') and 'weights-changing' or 'paused' end
  if redis.call('SCARD', key.usableServers) == 0 then
    return 'NO_SERVER_AVAILABLE', redis.call('EXISTS', key.servers) == 1 and 'none-ready' or 'no-servers'
  end
  if none_fits(item) then return 'NO_SERVER_AVAILABLE', 'none-fits' end
  return 'SERVERS_FULL', pool_takes_leases() and 'servers-full' or 'pool-full'
end

-- Why a waiter cannot be granted any more: code and, for one whose time is over, reason; or nil. `is_over`: its
-- time is, whatever it was to be.
local function waiter_error(waiter, now, is_over)
  if not is_current_worker(waiter.workerId, waiter.workerEpoch) then return (void_worker(waiter.workerId)) end
  if not is_over and waiter.deadlineMs > now then return nil end
  local code, reason = obstacle_of(waiter)
  return code == 'SERVERS_FULL' and 'WAIT_TIMEOUT' or code, reason
end

-- Answers the waiter if it can be granted or never will be; else puts it into the lane it belongs to now.
-- True when it left the lane it stood in.
local function settle_waiter(waiter, now, most_sessions, answers, servers)
  local code, reason = waiter_error(waiter, now)
  if code then
    remove_waiter(waiter)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = code, reason = reason })
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

-- Of each full server the first session that waits for it and may leave it for this one, as (acquireId, score).
local function visit_leaving(server, skipped, visit)
  if not setting('affinityBreakMargin') then return end
  for _, id in ipairs(redis.call('SRANDMEMBER', key.sessionLanes, LANES_LOOKED_AT)) do
    local bound = id ~= server.id and server_of(id)
    if bound and is_usable(bound) then
      local page = redis.call('ZRANGE', key.serverLane(id), 0, WAITERS_LOOKED_AT - 1, 'WITHSCORES')
      if #page == 0 then redis.call('SREM', key.sessionLanes, id) end
      for index = 1, #page, 2 do
        local waiter = not skipped[page[index]] and waiter_of(page[index])
        if waiter and may_leave_for(waiter, bound, server) then
          visit(page[index], tonumber(page[index + 1]))
          break
        end
      end
    end
  end
end

-- The waiter that is next in one of the lanes this server may serve, and whether it would leave another server for it.
local function first_waiter_for(server, skipped)
  local best, best_score, leaves
  for _, lane in ipairs(lanes_for(server)) do
    local head = redis.call('ZRANGE', key.serverLane(lane), 0, 0, 'WITHSCORES')
    if head[1] and (best == nil or tonumber(head[2]) < best_score) then
      best, best_score = head[1], tonumber(head[2])
    end
  end
  visit_leaving(server, skipped, function(acquire_id, score)
    if best == nil or score < best_score then best, best_score, leaves = acquire_id, score, true end
  end)
  return best and waiter_of(best), leaves
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
  local work, skipped = 0, {}
  for _, id in ipairs(server_ids) do
    local server = server_of(id)
    while server and has_room(server) and pool_takes_leases() do
      if work >= WORK_PER_SCRIPT then return true end
      work = work + 1
      local waiter, leaves = first_waiter_for(server, skipped)
      if not waiter then break end
      if settle_waiter(waiter, now, most_sessions, answers, servers) then
        work = work + WORK_OF_A_GRANT - 1
      elseif leaves then
        skipped[waiter.acquireId] = true
      else
        break
      end
    end
  end
  return false
end

-- Order and ends of parked acquires.
local Waiters = {}

local WORK_PER_SCRIPT = 128 -- waiters checked; each may be restricted, and a grant costs as much as six checks
local WORK_OF_A_GRANT = 6
Waiters.SERVERS_LOOKED_AT = 64
local LANES_LOOKED_AT, WAITERS_LOOKED_AT = 64, 8 -- of sessions that may leave a full server
local SESSION_LANES = { Admission.PAUSED_LANE, Admission.NEW_LANE } -- in the order in which they are granted

function Waiters.park(tx, item, lane)
  item.lane = lane
  item.parkedAtMs, item.deadlineMs = tx.now, tx.now + item.waitMs
  Parked.take_place(tx, item)
  if lane == Admission.PAUSED_LANE then item.score = Admission.score(tx, item) end
  Parked.save(tx, item)
end

-- Chooses the server of an acquire: (server, receipt), or (nil, lane to wait in). No acquire gets a server while the
-- pool is paused or at its own bound.
function Waiters.place_of(tx, item)
  if not Settings.takes_leases(tx) then return nil, '*' end
  return Choose.server(tx, item)
end

-- Why the acquire gets no lease now: error code and reason (UNSERVED_REASONS of libs/contracts).
function Waiters.obstacle_of(tx, item)
  local paused = Settings.pause_reason(tx)
  if paused then return 'POOL_PAUSED', paused end
  if redis.call('SCARD', tx.key.usableServers) == 0 then
    if redis.call('EXISTS', tx.key.servers) == 0 then return 'NO_SERVER_AVAILABLE', 'no-servers' end
    local obstacle = Servers.find_weight_obstacle(tx)
    if obstacle then return 'NO_SERVER_AVAILABLE', obstacle end
  elseif not Narrow.none_fits(tx, item, tx.key.usableServers) then
    if not Settings.takes_leases(tx) then return 'SERVERS_FULL', 'pool-full' end
    local waits_for_kv = tx.waits_for_kv[item.acquireId] or Admission.LANES[item.lane]
    return 'SERVERS_FULL', waits_for_kv and 'kv-full' or 'servers-full'
  end
  -- The weight version of a server changes, and is 0 while the server has failed.
  local lasting = { excludeServers = item.excludeServers, labels = item.labels, needs = item.needs, model = item.model }
  return 'NO_SERVER_AVAILABLE', Narrow.none_fits(tx, lasting, tx.key.servers) and 'none-fits' or 'none-ready'
end

-- Why a waiter cannot be granted any more: error code and, when its time is over, reason; or nil. `is_over`: its time
-- is over, whatever its deadline.
function Waiters.error(tx, waiter, is_over)
  if not Leases.is_current_worker(tx, waiter.workerId, waiter.workerEpoch) then
    return (WorkerFence.expired_worker(tx, waiter.workerId))
  end
  if not is_over and waiter.deadlineMs > tx.now then return nil end
  local code, reason = Waiters.obstacle_of(tx, waiter)
  return code == 'SERVERS_FULL' and 'WAIT_TIMEOUT' or code, reason
end

-- Answers the waiter if it can be granted or never will be; otherwise puts it into the lane to which it belongs now.
-- True when the waiter left its lane.
function Waiters.settle(tx, waiter, answers, servers)
  local code, reason = Waiters.error(tx, waiter)
  if code then
    Parked.remove(tx, waiter)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = code, reason = reason })
    return true
  end
  local server, choice = Waiters.place_of(tx, waiter)
  if server then
    Parked.remove(tx, waiter, true)
    local line = Leases.grant(tx, waiter, server, choice)
    local answer = Leases.granted(tx, waiter, server, line, choice, servers)
    answer.acquireId = waiter.acquireId
    answer.replyTo = waiter.replyTo
    answer.waitedMs = tx.now - (waiter.parkedAtMs or tx.now)
    table.insert(answers, answer)
    return true
  end
  local lane = choice
  if lane == waiter.lane then return false end
  redis.call('ZREM', tx.key:serverLane(waiter.lane), waiter.acquireId)
  waiter.lane = lane
  if lane == Admission.PAUSED_LANE then waiter.score = Admission.score(tx, waiter) end
  Parked.save(tx, waiter)
  return true
end

-- Visits, as (acquireId, score), the first waiter of each full server whose session may leave that server for this
-- server.
local function visit_leaving(tx, server, skipped, visit)
  if not Settings.get(tx, 'affinityBreakMargin') then return end
  for _, id in ipairs(redis.call('SRANDMEMBER', tx.key.sessionLanes, LANES_LOOKED_AT)) do
    local bound = id ~= server.id and Servers.get(tx, id)
    if bound and Servers.is_usable(tx, bound) then
      local page = redis.call('ZRANGE', tx.key:serverLane(id), 0, WAITERS_LOOKED_AT - 1, 'WITHSCORES')
      if #page == 0 then redis.call('SREM', tx.key.sessionLanes, id) end
      for index = 1, #page, 2 do
        local waiter = not skipped[page[index]] and Parked.get(tx, page[index])
        if waiter and Choose.may_leave_for(tx, waiter, bound, server) then
          visit(page[index], tonumber(page[index + 1]))
          break
        end
      end
    end
  end
end

-- Returns the next waiter of the lanes that this server may serve, and true if the session of this waiter leaves its
-- own full server.
local function first_waiter_for(tx, server, skipped)
  local best, best_score, leaves
  for _, lane in ipairs(Restrictions.lanes_for(tx, server)) do
    local head = redis.call('ZRANGE', tx.key:serverLane(lane), 0, 0, 'WITHSCORES')
    if head[1] and (best == nil or tonumber(head[2]) < best_score) then
      best, best_score = head[1], tonumber(head[2])
    end
  end
  visit_leaving(tx, server, skipped, function(acquire_id, score)
    if best == nil or score < best_score then best, best_score, leaves = acquire_id, score, true end
  end)
  return best and Parked.get(tx, best), leaves
end

-- Grants the first waiters of the lanes of sessions that are not resident, paused sessions before new sessions. Returns
-- true when the bound of one script was reached.
local function grant_sessions(tx, work, answers, servers)
  for _, lane in ipairs(SESSION_LANES) do
    local key, stays = tx.key:serverLane(lane), 0
    while stays < Admission.LOOKED_AT do
      if work >= WORK_PER_SCRIPT then return true end
      local id = redis.call('ZRANGE', key, stays, stays)[1]
      if not id then break end
      local waiter = Parked.get(tx, id)
      work = work + WORK_OF_A_GRANT
      if not waiter then
        redis.call('ZREM', key, id)
      elseif not Settings.takes_leases(tx) or not Waiters.settle(tx, waiter, answers, servers) then
        stays = stays + 1
      end
    end
    if stays > 0 then return false end
  end
  return false
end

-- Empties the lanes of sessions in a pool that has ended admission by KV memory: each waiter is granted or answered, or
-- waits in the lane of other acquires. Returns true when the bound of one script was reached.
local function drain_sessions(tx, answers, servers)
  if redis.call('EXISTS', tx.key:serverLane(SESSION_LANES[1]), tx.key:serverLane(SESSION_LANES[2])) == 0 then
    return false
  end
  local page = math.floor(WORK_PER_SCRIPT / WORK_OF_A_GRANT)
  for _, lane in ipairs(SESSION_LANES) do
    local key = tx.key:serverLane(lane)
    local ids = redis.call('ZRANGE', key, 0, page - 1)
    for _, id in ipairs(ids) do
      local waiter = Parked.get(tx, id)
      if waiter then Waiters.settle(tx, waiter, answers, servers) else redis.call('ZREM', key, id) end
    end
    if #ids == page then return true end
  end
  return false
end

-- Grants waiters while these servers and the pool have room; true when the bound of one script was reached first. The
-- list may name a server more than once.
function Waiters.grant(tx, server_ids, answers, servers)
  if redis.call('HLEN', tx.key.acquireWaiters) == 0 or not Settings.takes_leases(tx) then return false end
  -- Room below the bound of the pool can be used on any server, not only on the server that made it.
  if Settings.get(tx, 'poolMaxInflight') then
    Servers.write_scores(tx)
    server_ids = redis.call('ZRANGE', tx.key.eligible, 0, Waiters.SERVERS_LOOKED_AT - 1)
  end
  table.sort(server_ids)
  local work, skipped = 0, {}
  for index, id in ipairs(server_ids) do
    local server = id ~= server_ids[index - 1] and Servers.get(tx, id)
    while server and Servers.has_room(tx, server) and Settings.takes_leases(tx) do
      if work >= WORK_PER_SCRIPT then return true end
      work = work + 1
      local waiter, leaves = first_waiter_for(tx, server, skipped)
      if not waiter then break end
      if Waiters.settle(tx, waiter, answers, servers) then
        work = work + WORK_OF_A_GRANT - 1
      elseif leaves then
        skipped[waiter.acquireId] = true
      else
        break
      end
    end
  end
  return tx.admits_by_kv and grant_sessions(tx, work, answers, servers)
end

-- Ends a transition that made room on these servers: the room goes to waiters, whose answers are added to the reply of
-- `fields` and `json`, see Reply.object. `fields` is a function when the fields depend on the leases granted here.
function Waiters.reply(tx, server_ids, fields, json)
  local answers, servers = {}, {}
  local more = not tx.admits_by_kv and drain_sessions(tx, answers, servers)
  more = Waiters.grant(tx, server_ids, answers, servers) or more
  Leases.save(tx)
  if type(fields) == 'function' then fields = fields() end
  fields.answers, fields.more, json = answers, more, json or {}
  json.servers = Reply.servers(servers)
  return Reply.object(fields, json)
end

return Waiters

--[[ Grants leases: each item gets the least loaded server (or that of its session), waits in a lane, or is refused.
ARGV[1] JSON:
  items            list of {acquireId, requestId, workerId, workerEpoch, sessionId?, groupId?, priority?,
                   contextTokens?, weightVersion?, minWeightVersion?, maxWeightLag?, excludeServers?, labels?, needs?,
                   dpRank?, boundServerId?, boundServerEpoch?, explain?, waitMs?, replyTo?}; at most 128. Without
                   replyTo an item is never parked
  mostSessions     number: sessions kept; above it the longest idle one goes
  mostWaiters      number: parked acquires of the pool
Reply: results     list, in the order of the items: the line of the ring of decisions (routing/decisions.lua), or with
                   a rank or a snapshot, or in a repeat, {seq, serverId, branch, inflight, policy, policyVersion, key,
                   best, eligible, via?, snapshot?, dpRank?} | {parked} | {error, reason?}; a repeat that is no longer
                   in the ring has no key, best and eligible
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
Errors per item: WORKER_NOT_FOUND, FENCED (worker epoch is expired), RELEASED (a release by this acquireId came first),
  ABORTED (so did an abort), NO_SERVER_AVAILABLE, SERVERS_FULL, POOL_PAUSED (these three with their reason),
  NO_CAPABLE_SERVER, QUEUE_FULL, VALIDATION_FAILED (the acquireId is held by another live worker).
A repeat gets the same lease while it lives and 120 s after; the repeat of a parked one moves its answer to the new
replyTo and keeps its place.
Events: none. ]]
-- What was released, or false; read for all items at once.
local function past_of(tx, items, acquire_id)
  if not tx.past_leases then
    local past, names = {}, {}
    for index, item in ipairs(items) do names[index] = tx.key:released(item.acquireId) end
    for index, packed in ipairs(redis.call('MGET', unpack(names))) do past[items[index].acquireId] = packed end
    tx.past_leases = past
  end
  return tx.past_leases[acquire_id]
end

-- The answer of a lease that lives or was returned lately; false when a fresh one must be granted.
local function repeated(tx, items, item, servers)
  local packed = LeaseTable.packed(tx, item.acquireId)
  if packed then
    local lease = LeaseRecord.unpack(packed)
    local same_holder = lease.workerId == item.workerId and lease.workerEpoch == item.workerEpoch
    if same_holder and Leases.is_on_current_epoch(tx, lease) then
      return Leases.answer(tx, lease, 'repeated', servers)
    end
    if not same_holder and Leases.is_current_worker(tx, lease.workerId, lease.workerEpoch) then
      return { error = 'VALIDATION_FAILED' }
    end
    Leases.give_back(tx, item.acquireId, lease, tx.now)
    return false
  end
  local past = past_of(tx, items, item.acquireId)
  if not past then return false end
  local refusal = Parked.tombstone_error(past)
  if refusal then return { error = refusal } end
  local lease = LeaseRecord.unpack(past)
  if lease.workerId == item.workerId and lease.workerEpoch == item.workerEpoch
    and Leases.is_on_current_epoch(tx, lease) then
    return Leases.answer(tx, lease, 'repeated', servers)
  end
  return { error = 'RELEASED' }
end

-- An abort named the request before this acquire arrived.
function Tx.fields.any_aborted(tx) return redis.call('EXISTS', tx.key.abortedAcquires) == 1 end
local function is_aborted(tx, request_id)
  local until_ms = tx.any_aborted and redis.call('ZSCORE', tx.key.abortedAcquires, request_id)
  return until_ms and tonumber(until_ms) > tx.now
end

-- True when there are servers, and all of them lack the same thing that is needed.
local function nobody_has(tx, needs)
  for _, feature in ipairs(needs or {}) do
    local lacking = tonumber(redis.call('HGET', tx.key.lackingServers, feature) or nil)
    if lacking and lacking == redis.call('ZCARD', tx.key.servers) then return true end
  end
  return false
end

-- The answer of one that waits already; nil for one that is to be looked at as new.
local function still_parked(tx, item, may_wait)
  local parked = Parked.get(tx, item.acquireId)
  if not parked then return nil end
  if parked.workerId ~= item.workerId then return { error = 'VALIDATION_FAILED' } end
  if may_wait and parked.workerEpoch == item.workerEpoch then
    parked.replyTo = item.replyTo
    parked.deadlineMs = tx.now + item.waitMs
    Parked.save(tx, parked)
    return { parked = true }
  end
  Parked.remove(tx, parked)
  tx.waiters = tx.waiters - 1
  return nil
end

function Tx.fields.waiters(tx) return redis.call('HLEN', tx.key.acquireWaiters) end

local function acquire(tx, args, item, servers)
  if not Leases.is_current_worker(tx, item.workerId, item.workerEpoch) then
    return { error = (WorkerFence.expired_worker(tx, item.workerId)) }
  end
  local answer = repeated(tx, args.items, item, servers)
  if answer then return answer end
  if is_aborted(tx, item.requestId) then return { error = 'ABORTED' } end
  local may_wait = item.replyTo ~= nil and (item.waitMs or 0) > 0
  answer = tx.waiters > 0 and still_parked(tx, item, may_wait)
  if answer then return answer end
  local server, choice = Waiters.place_of(tx, item)
  if server then
    local line = Leases.grant(tx, item, server, choice, args.mostSessions)
    if choice.snapshot or (item.sessionId and Leases.rank_of(tx, item.sessionId, server)) then
      return Leases.granted(tx, item, server, line, choice, servers)
    end
    Leases.list_server(server, servers)
    return line
  end
  local lane = choice
  if nobody_has(tx, item.needs) then return { error = 'NO_CAPABLE_SERVER' } end
  if not may_wait then
    local code, reason = Waiters.obstacle_of(tx, item)
    return { error = code, reason = reason }
  end
  -- No lane: too many different restrictions are waiting.
  if tx.waiters >= args.mostWaiters or not lane then return { error = 'QUEUE_FULL' } end
  Waiters.park(tx, item, lane, tx.now)
  tx.waiters = tx.waiters + 1
  return { parked = true }
end

-- Reads what the items need with one call for each kind.
local function read_ahead(tx, items)
  local acquire_ids, session_ids = {}, {}
  for index, item in ipairs(items) do
    for name, value in pairs(item) do
      if value == cjson.null then item[name] = nil end
    end
    if item.needs and not item.needs[1] then item.needs = nil end
    acquire_ids[index] = item.acquireId
    session_ids[#session_ids + 1] = item.sessionId
  end
  LeaseTable.read(tx, acquire_ids)
  Sessions.read(tx, session_ids)
  tx.order_wanted = #items + tx.order_wanted
end

return function(tx, args)
  local servers, results = {}, {}
  read_ahead(tx, args.items)
  for index, item in ipairs(args.items) do results[index] = acquire(tx, args, item, servers) end
  Leases.save(tx)
  return '{"results":' .. Reply.list(results) .. ',"servers":' .. cjson.encode(servers) .. '}'
end

--[[ Grants leases: each item gets the least loaded server (or the server of its session), waits in a lane, or is
refused.
ARGV[1] JSON:
  items            list of AcquireRequest of the protocol with replyTo?; at most 128. Without replyTo an item is never
                   parked
  maxWaiters       number: maximum parked acquires of the pool
Reply: results     list, in the order of the items; each is one of
                    text: the line of the ring of decisions (routing/decisions.lua)
                    {seq, serverId, branch, inflight, policy, policyVersion, key, best, eligible, via?, snapshot?,
                    dpRank?}: with a rank or a snapshot, and in a repeat; key, best and eligible are absent in a repeat
                    when the ring has lost the line
                    {parked} | {error, reason?}
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion,
                   cacheSalt?, streamInterval?}
Errors per item: WORKER_NOT_FOUND, FENCED (worker epoch is expired), RELEASED (a release by this acquireId arrived
  first), ABORTED (an abort arrived first), NO_SERVER_AVAILABLE, SERVERS_FULL, POOL_PAUSED (these three with their
  reason), SESSION_CONFLICT (the session has another parent, or is its own ancestor), NO_CAPABLE_SERVER,
  MODEL_NOT_FOUND, QUEUE_FULL, VALIDATION_FAILED (another live worker holds the acquireId).
A repeat gets the same lease while it lives and 120 s after; the repeat of a parked acquire moves its answer to the new
replyTo and keeps its place. ]]
-- The answer to a repeat whose lease lives or was returned lately; false when a new lease must be granted.
local function repeated(tx, item, past, servers)
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
    Leases.give_back(tx, item.acquireId, lease)
    return false
  end
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

-- The common case: no waiters, and no abort names a request.
function Tx.fields.is_quiet(tx) return redis.call('EXISTS', tx.key.abortedAcquires, tx.key.acquireWaiters) == 0 end
function Tx.fields.waiters(tx) return redis.call('HLEN', tx.key.acquireWaiters) end

-- True when an abort named the request before this acquire arrived.
local function is_aborted(tx, request_id)
  local until_ms = redis.call('ZSCORE', tx.key.abortedAcquires, request_id)
  return until_ms and tonumber(until_ms) > tx.now
end

-- True when there are servers, and all of them lack the same feature of `needs`.
local function nobody_has(tx, needs)
  for _, feature in ipairs(needs or {}) do
    local lacking = tonumber(redis.call('HGET', tx.key.lackingServers, feature) or nil)
    if lacking and lacking == redis.call('ZCARD', tx.key.servers) then return true end
  end
  return false
end

-- The answer of an acquire that waits already; nil for an acquire that is to be handled as new.
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

-- `past`: the lease that was released under the acquireId, packed, or its tombstone; or false.
local function acquire(tx, args, item, past, servers)
  if not Leases.holder(tx, item.workerId, item.workerEpoch) then
    return { error = (WorkerFence.expired_worker(tx, item.workerId)) }
  end
  local answer = (past or tx.known_leases[item.acquireId]) and repeated(tx, item, past, servers)
  if answer then return answer end
  local may_wait = item.replyTo ~= nil and (item.waitMs or 0) > 0
  if not tx.is_quiet then
    if is_aborted(tx, item.requestId) then return { error = 'ABORTED' } end
    answer = tx.waiters > 0 and still_parked(tx, item, may_wait)
    if answer then return answer end
  end
  if item.model then
    local constraint = Models.constraint(tx, item.model)
    if constraint == 'unknown' then return { error = 'MODEL_NOT_FOUND' } end
    if constraint == 'nothing' then item.model = nil end
  end
  if Admission.has_wrong_parent(tx, item) then return { error = 'SESSION_CONFLICT' } end
  local server, choice = Waiters.place_of(tx, item)
  if server then
    local line = Leases.grant(tx, item, server, choice)
    if choice.snapshot or (item.sessionId and Leases.rank_of(tx, item.sessionId, server)) then
      return Leases.granted(tx, item, server, line, choice, servers)
    end
    if not servers[server.id] then servers[server.id] = ServerWeights.describe(tx, server) end
    return line
  end
  local lane = choice
  if nobody_has(tx, item.needs) then return { error = 'NO_CAPABLE_SERVER' } end
  if not may_wait then
    local code, reason = Waiters.obstacle_of(tx, item)
    return { error = code, reason = reason }
  end
  -- No lane: too many different restrictions are waiting.
  if tx.waiters >= args.maxWaiters or not lane then return { error = 'QUEUE_FULL' } end
  Waiters.park(tx, item, lane)
  tx.is_quiet = false
  tx.waiters = tx.waiters + 1
  return { parked = true }
end

-- Reads the records that the items need with one call for each kind. Returns the released lease or tombstone of each
-- item, or false.
local function read_ahead(tx, items)
  local acquire_ids, released, session_ids, request_ids = {}, {}, {}, {}
  for index, item in ipairs(items) do
    acquire_ids[index], request_ids[index] = item.acquireId, item.requestId
    released[index] = tx.key:released(item.acquireId)
    if item.sessionId then session_ids[#session_ids + 1] = item.sessionId end
  end
  LeaseTable.read(tx, acquire_ids)
  Sessions.read(tx, session_ids)
  RequestLeases.read(tx, request_ids)
  tx.expected_choices = #items
  return redis.call('MGET', unpack(released))
end

return function(tx, args)
  local servers, results = {}, {}
  local past = read_ahead(tx, args.items)
  for index, item in ipairs(args.items) do results[index] = acquire(tx, args, item, past[index], servers) end
  Leases.save(tx)
  return '{"results":' .. Reply.list(results) .. ',"servers":' .. Reply.servers(servers) .. '}'
end

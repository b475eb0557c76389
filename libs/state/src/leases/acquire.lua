--[[ Grants leases: each item gets the least loaded server (or that of its session), waits in a lane, or is refused.
ARGV[1] JSON:
  items            list of {acquireId, requestId, workerId, workerEpoch, sessionId?, groupId?, priority?,
                   contextTokens?, weightVersion?, minWeightVersion?, maxWeightLag?, excludeServers?, labels?, needs?,
                   dpRank?, boundServerId?, boundServerEpoch?, explain?, waitMs?, replyTo?}; at most 128. Without
                   replyTo an item is never parked
  mostSessions     number: sessions kept; above it the longest idle one goes
  mostWaiters      number: parked acquires of the pool
  brief?           boolean: leave the receipts out of the reply, but for items that `explain`
Reply: results     list, in the order of the items: {seq, serverId, branch, inflight, policy, policyVersion, key,
                   best, eligible, via?, snapshot?, dpRank?} | {parked} | {error, reason?}; a repeat that is no longer
                   in the ring of decisions has no key, best and eligible
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
Errors per item: WORKER_NOT_FOUND, FENCED (worker epoch is void), RELEASED (a release by this acquireId came first),
ABORTED (so did an abort),
  NO_SERVER_AVAILABLE, SERVERS_FULL, POOL_PAUSED (these three with their reason), NO_CAPABLE_SERVER, QUEUE_FULL,
  VALIDATION_FAILED (the acquireId is held by another live worker).
A repeat gets the same lease while it lives and 120 s after; the repeat of a parked one moves its answer to the new
replyTo and keeps its place.
Facts: none. ]]
return function(tx, args)
  local now = tx.now
  local waiters = redis.call('HLEN', tx.key.acquireWaiters)
  local servers = {}

  -- What was released, or false; read for all items at once.
  local past_leases
  local function past_of(acquire_id)
    if not past_leases then
      past_leases = {}
      local names = {}
      for index, item in ipairs(args.items) do names[index] = tx.key:released(item.acquireId) end
      for index, past in ipairs(redis.call('MGET',
        unpack(names))) do past_leases[args.items[index].acquireId] = past end
    end
    return past_leases[acquire_id]
  end

  -- The answer of a lease that lives or was returned lately; false when a fresh one must be granted.
  local function repeated(item)
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
      Leases.give_back(tx, item.acquireId, lease, now)
      return false
    end
    local past = past_of(item.acquireId)
    if not past then return false end
    local refusal = Parked.tombstone_error(past)
    if refusal then return { error = refusal } end
    local lease = LeaseRecord.unpack(past)
    if lease.workerId == item.workerId and lease.workerEpoch == item.workerEpoch and Leases.is_on_current_epoch(tx,
      lease) then
      return Leases.answer(tx, lease, 'repeated', servers)
    end
    return { error = 'RELEASED' }
  end

  -- An abort named the request before this acquire arrived.
  local any_aborted = redis.call('EXISTS', tx.key.abortedAcquires) == 1
  local function is_aborted(request_id)
    local until_ms = any_aborted and redis.call('ZSCORE', tx.key.abortedAcquires, request_id)
    return until_ms and tonumber(until_ms) > now
  end

  -- True when there are servers, and all of them lack the same thing that is needed.
  local function nobody_has(needs)
    for _, feature in ipairs(needs or {}) do
      local lacking = tonumber(redis.call('HGET', tx.key.lackingServers, feature) or nil)
      if lacking and lacking == redis.call('ZCARD', tx.key.servers) then return true end
    end
    return false
  end

  local function acquire(item)
    if not Leases.is_current_worker(tx, item.workerId, item.workerEpoch) then
      return { error = (WorkerFence.void_worker(tx, item.workerId)) }
    end
    local answer = repeated(item)
    if answer then return answer end
    if is_aborted(item.requestId) then return { error = 'ABORTED' } end
    local may_wait = item.replyTo ~= nil and (item.waitMs or 0) > 0
    local parked = waiters > 0 and Parked.get(tx, item.acquireId) or nil
    if parked and parked.workerId ~= item.workerId then return { error = 'VALIDATION_FAILED' } end
    if parked and may_wait and parked.workerEpoch == item.workerEpoch then
      parked.replyTo = item.replyTo
      parked.deadlineMs = now + item.waitMs
      Parked.save(tx, parked)
      return { parked = true }
    end
    if parked then
      Parked.remove(tx, parked)
      waiters = waiters - 1
    end
    local server, branch, lane = Waiters.place_of(tx, item)
    if server then return Leases.answer(tx, Leases.grant(tx, item, server, now, args.mostSessions), branch, servers) end
    if nobody_has(item.needs) then return { error = 'NO_CAPABLE_SERVER' } end
    if not may_wait then
      local code, reason = Waiters.obstacle_of(tx, item)
      return { error = code, reason = reason }
    end
    -- No lane: too many different restrictions are waiting.
    if waiters >= args.mostWaiters or not lane then return { error = 'QUEUE_FULL' } end
    Waiters.park(tx, item, lane, now)
    waiters = waiters + 1
    return { parked = true }
  end

  local acquire_ids = {}
  for index, item in ipairs(args.items) do acquire_ids[index] = item.acquireId end
  LeaseTable.read(tx, acquire_ids)
  tx.order_wanted = #acquire_ids + tx.order_wanted
  local results = {}
  for index, item in ipairs(args.items) do
    for name, value in pairs(item) do
      if value == cjson.null then item[name] = nil end
    end
    if item.needs and not item.needs[1] then item.needs = nil end
    local result = acquire(item)
    if Reply.optional(args.brief) and result.seq and not item.explain then
      result = { seq = result.seq, serverId = result.serverId, branch = result.branch, inflight = result.inflight,
        policy = result.policy, dpRank = result.dpRank }
    end
    results[index] = result
  end
  Leases.save(tx)
  return '{"results":' .. Reply.list(results) .. ',"servers":' .. cjson.encode(servers) .. '}'
end

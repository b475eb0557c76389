--[[ Selects one page of what an abort means and begins to end it. Any replica may take the next page.
A page ends with the group that makes it 64 requests, or with 512 leases looked at (2,048 when most are passed over).
ARGV[1] JSON: {abortId}   string
Steps of the work: {kind: .., scope or absent}   scope: 'sample' | 'group', for requests; absent: that of their round
  requests   ids: by requestId; unknown ones leave tombstones for submits, with refuseAcquiresMs for acquires too, and
             are looked for among the parked acquires and the leases
  group      job, groupId; an unknown one leaves a tombstone
  round      job, roundId: its groups that are neither accepted nor newer than the abort
  longtail   job: the long-tail queue
  job        job: its long-tail queue and its rounds
  jobs       all jobs
  attempts   workerId: what its live epoch has claimed
  waiters    workerId | sessionId | wanted | nothing = all: parked acquires; ofAbortedGroups: those of aborted requests
  leases     workerId | serverId | sessionId | nothing = all;
             known: leases of our own requests are selected too, by their request
  requestLeases  wanted (requestId -> 0, 1 when found)
Reply: SelectPage
Events: group.dropped, request.aborted, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE, WAITERS_LOOKED_AT = 64, 128 -- dropping a group is some 25 commands
  local LEASES_LOOKED_AT, LEASES_PASSED_OVER = 512, 2048 -- read one by one; most passed over by a plain search
  local hash = tx.key:abort(args.abortId)
  local field = redis.call('HMGET', hash, 'work', 'upTo')
  if not field[1] then
    redis.call('ZREM', tx.key.aborts, args.abortId)
    return Reply.object({ more = false, aborts = {}, leases = {}, answers = {} })
  end
  local work, up_to, now = cjson.decode(field[1]), tonumber(field[2]), tx.now
  local aborts, leases, answers, touched = {}, {}, {}, 0

  local function bury(name)
    redis.call('ZADD', tx.key.abortTombstones, Format.integer(now + Aborts.kept_ms(tx)), name)
  end

  -- Acquires of this request that come within this time are refused, unless it is found to be known after all.
  local function bury_acquires(id, for_ms)
    redis.call('ZADD', tx.key.abortedAcquires, Format.integer(now + for_ms), id)
    redis.call('PEXPIRE', tx.key.abortedAcquires, Format.integer(math.max(for_ms, redis.call('PTTL',
      tx.key.abortedAcquires))))
  end

  local function select_group(round, group)
    touched = touched + group.launched
    Aborts.abort_group(tx, round, group, args.abortId, aborts)
    Aborts.record_group(tx, args.abortId, group)
  end

  local function select_known(group)
    local round, can_continue = Recovery.round_of(tx, group)
    if can_continue then select_group(round, group) end
  end

  local function select_request(request, scope)
    touched = touched + 1
    Aborts.record(tx, args.abortId, 'R', request.id)
    local group, round = Recovery.owners_of(tx, request)
    if not group or not Aborts.may_be_aborted(group) then return end
    if request.state == 'finished' or request.state == 'failed' or request.state == 'dropped' then return end
    touched = touched + group.launched
    Aborts.abort_request(tx, round, group, request, args.abortId, scope, aborts)
  end

  -- Takes requestIds off a step until the page is full. Returns those that are not in the counts.
  local function select_ids(step)
    local unknown = {}
    while step.ids and #step.ids > 0 and touched < PAGE do
      local id = table.remove(step.ids, 1)
      local request = Requests.load(tx, id)
      if request then select_request(request, step.scope) else table.insert(unknown, id) end
    end
    return unknown
  end

  -- Groups of a zset in the order of their scores, which only ever grow.
  local function select_groups(step, zset, of_round)
    local page = redis.call('ZRANGEBYSCORE', zset, '(' .. Format.integer(step.cursor or -1), '+inf', 'WITHSCORES',
      'LIMIT', 0, PAGE)
    for position = 1, #page, 2 do
      if touched >= PAGE then return false end
      step.cursor = tonumber(page[position + 1])
      touched = touched + 1
      local group = Rounds.load_group(tx, step.job, page[position])
      if not group then
        if of_round then Recovery.lose_live_group(tx, of_round, page[position])
        else Recovery.lose_queued(tx, step.job, page[position]) end
      elseif group.arrival <= up_to and Aborts.may_be_aborted(group) then
        select_known(group)
      end
    end
    return #page < 2 * PAGE
  end

  local function matches(step, lease)
    if step.wanted then
      if not step.wanted[lease.requestId] then return false end
      step.wanted[lease.requestId] = 1
      redis.call('ZREM', tx.key.abortedAcquires, lease.requestId)
      return true
    end
    return (not step.workerId or step.workerId == lease.workerId)
      and (not step.serverId or step.serverId == lease.serverId)
      and (not step.sessionId or step.sessionId == lease.sessionId)
  end

  -- True when a worker has it claimed and the counts know it.
  local function is_known(id, worker_id, worker_epoch)
    local holder = redis.call('HMGET', tx.key:request(id), 'workerId', 'workerEpoch')
    return holder[1] == worker_id and holder[2] == worker_epoch
  end

  local function select_lease(step, acquire_id, lease)
    if is_known(lease.requestId, lease.workerId, lease.workerEpoch) then
      if step.known then table.insert(step.ids, lease.requestId) end
      return
    end
    local id = Format.integer(lease.seq) .. '.' .. acquire_id
    Aborts.record(tx, args.abortId, 'L', id, lease.requestId)
    -- What an expired epoch holds is returned by the load-balancer.
    if not WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch) then return end
    redis.call('ZADD', tx.key.abortingLeases, 'NX', Format.integer(now), id)
    table.insert(leases, LeaseTable.fence(id, lease))
  end

  local function is_of_aborted_group(id)
    local request = Requests.load(tx, id)
    local state = request and redis.call('HGET', tx.key:group(request.job, request.groupId), 'state')
    return state == 'aborting' or state == 'dropped'
  end

  local function waiter_matches(step, waiter)
    if step.ofAbortedGroups then return is_of_aborted_group(waiter.requestId) end
    return matches(step, waiter)
  end

  -- Ends the waiting. A repeat of the acquire is refused too.
  local function cancel_waiter(step, waiter)
    Parked.remove(tx, waiter)
    redis.call('SET', tx.key:released(waiter.acquireId), Parked.ABORTED_TOMBSTONE, 'PX', Parked.TOMBSTONE_MS)
    table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'ABORTED' })
    if step.ofAbortedGroups then return end
    if not is_known(waiter.requestId, waiter.workerId, waiter.workerEpoch) then
      Aborts.record(tx, args.abortId, 'W', waiter.requestId)
    elseif step.known then
      table.insert(step.ids, waiter.requestId)
    end
  end

  -- The leases of a session, as (acquireId, packed) pairs in turn; nil when only a look at all leases can tell. They
  -- are on the server it is bound to, unless it was bound anew meanwhile: its binding counts them.
  local function leases_of_session(session_id)
    local binding = Sessions.get(tx, session_id)
    if not binding then return {} end
    local set = tx.key:serverLeases(binding.serverId, binding.epoch)
    if redis.call('SCARD', set) > LEASES_LOOKED_AT then return nil end
    local ids, found = redis.call('SMEMBERS', set), {}
    local packed = #ids > 0 and redis.call('HMGET', tx.key.leases, unpack(ids)) or {}
    for position, id in ipairs(ids) do
      if packed[position] and LeaseRecord.may_name(packed[position], session_id)
        and LeaseRecord.unpack(packed[position]).sessionId == session_id then
        table.insert(found, id)
        table.insert(found, packed[position])
      end
    end
    return #found == 2 * binding.leases and found or nil
  end

  local steps = {}

  function steps.requests(step)
    local unknown = select_ids(step)
    for _, id in ipairs(unknown) do
      bury(step.scope and step.scope .. '|' .. id or id)
      if step.refuseAcquiresMs then bury_acquires(id, step.refuseAcquiresMs) end
      step.unknown = step.unknown or {}
      step.unknown[id] = 0
    end
    if #step.ids > 0 then return false end
    if step.unknown then
      table.insert(work, 2, { kind = 'requestLeases', wanted = step.unknown })
      table.insert(work, 2, { kind = 'waiters', wanted = step.unknown })
    end
    return true
  end

  function steps.group(step)
    local group = Rounds.load_group(tx, step.job, step.groupId)
    if not group then bury('G|' .. step.job .. '/' .. step.groupId)
    elseif Aborts.may_be_aborted(group) then select_known(group)
    else Aborts.record_group(tx, args.abortId, group) end
    return true
  end

  function steps.round(step)
    local round = Rounds.load(tx, step.job, step.roundId)
    return not round or select_groups(step, tx.key:roundGroups(step.job, step.roundId), round)
  end

  function steps.longtail(step) return select_groups(step, tx.key:longtail(step.job)) end

  function steps.job(step)
    for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(step.job), 0, -1)) do
      table.insert(work, 2, { kind = 'round', job = step.job, roundId = round_id })
    end
    table.insert(work, 2, { kind = 'longtail', job = step.job })
    return true
  end

  function steps.jobs()
    for _, job in ipairs(redis.call('SMEMBERS', tx.key.jobs)) do table.insert(work, 2, { kind = 'job', job = job }) end
    return true
  end

  -- A step that scans, page by page; requestIds that a page has found are selected before the next one.
  local function scanning(look)
    return function(step)
      step.ids = step.ids or {}
      select_ids(step)
      if #step.ids > 0 or touched >= PAGE then return false end
      return step.cursor == '0' or look(step) == true
    end
  end

  steps.attempts = scanning(function(step)
    step.epoch = step.epoch or redis.call('HGET', tx.key:worker(step.workerId), 'liveEpoch') or nil
    if not step.epoch then return true end
    local page = redis.call('SSCAN', tx.key:workerAttempts(step.workerId, step.epoch), step.cursor or '0', 'COUNT',
      PAGE)
    step.cursor, step.ids = page[1], page[2]
  end)

  steps.waiters = scanning(function(step)
    if redis.call('EXISTS', tx.key.acquireWaiters) == 0 then return true end
    local page = redis.call('HSCAN', tx.key.acquireWaiters, step.cursor or '0', 'COUNT', WAITERS_LOOKED_AT)
    step.cursor = page[1]
    local leases_step = work[2] and work[2].wanted and work[2]
    for position = 2, #page[2], 2 do
      local waiter = cjson.decode(page[2][position])
      if waiter_matches(step, waiter) then
        cancel_waiter(step, waiter)
        -- Found among the waiters, it need not be found among the leases.
        if step.wanted and leases_step then leases_step.wanted[waiter.requestId] = 1 end
      end
    end
    touched = PAGE
  end)

  steps.leases = scanning(function(step)
    local named = step.workerId or step.serverId or step.sessionId
    local cursor, found = '0', not step.cursor and step.sessionId and leases_of_session(step.sessionId)
    if not found then
      cursor, found = unpack(redis.call('HSCAN', tx.key.leases, step.cursor or '0', 'COUNT',
        named and LEASES_PASSED_OVER or LEASES_LOOKED_AT))
    end
    step.cursor = cursor
    for position = 1, #found, 2 do
      local packed = found[position + 1]
      if not named or LeaseRecord.may_name(packed, named) then
        local lease = LeaseRecord.unpack(packed)
        if matches(step, lease) then select_lease(step, found[position], lease) end
      end
    end
    -- A look at many leases fills the page.
    touched = PAGE
  end)

  -- One page of the acquireIds of a request, and where the next one begins.
  local function acquires_of(id, cursor)
    local held = redis.call('HGET', tx.key.requestLeases, id)
    if held ~= RequestLeases.IN_SET then return RequestLeases.split(held or ''), '0' end
    local page = redis.call('SSCAN', tx.key:leasesOfRequest(id), cursor, 'COUNT', PAGE)
    return page[2], page[1]
  end

  function steps.requestLeases(step)
    local id = step.id or next(step.wanted)
    while id and touched < PAGE do
      local acquires, cursor = acquires_of(id, step.cursor or '0')
      touched = touched + 1 + #acquires
      step.id, step.cursor = nil, nil
      for _, acquire_id in ipairs(acquires) do
        local packed = redis.call('HGET', tx.key.leases, acquire_id)
        local lease = packed and LeaseRecord.unpack(packed)
        if lease and matches(step, lease) then select_lease(step, acquire_id, lease) end
      end
      if cursor ~= '0' then
        step.id, step.cursor = id, cursor
      else
        if step.wanted[id] == 0 then Aborts.record(tx, args.abortId, 'N', id) end
        step.wanted[id] = nil
        id = next(step.wanted)
      end
    end
    return id == nil
  end

  local looked = 0
  while #work > 0 and touched < PAGE do
    local step = work[1]
    -- An expanded step puts its parts behind itself.
    if steps[step.kind](step) then table.remove(work, 1) end
    looked = looked + 1
    if looked >= PAGE then break end
  end
  if #work > 0 then
    redis.call('HSET', hash, 'work', cjson.encode(work))
  else
    redis.call('HDEL', hash, 'work')
    redis.call('ZREM', tx.key.aborts, args.abortId)
    redis.call('PEXPIRE', hash, Format.integer(Aborts.kept_ms(tx)))
    redis.call('PEXPIRE', tx.key:abortRows(args.abortId), Format.integer(Aborts.kept_ms(tx)))
  end
  return Reply.object({ more = #work > 0, aborts = aborts, leases = leases, answers = answers })
end

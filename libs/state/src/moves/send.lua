--[[ Carries out one page of a plan: each move whose assumptions still hold, the others are refused one by one. A
request that nobody runs is bound to its target and has moved; one that a worker has becomes `cutting`, as in a cut, and
is listed for its holder: it is pending and bound once that is confirmed. Safe to repeat: a move is sent once.
ARGV[1] JSON:
  planId               string
  maxMovesPerRequest   number
  keptMs               number: life of the states from now on
Reply: aborts   list of {requestId, attempt, workerId, workerEpoch}
       leases   list of {planId, leaseId, workerId, workerEpoch, targetServerId, targetEpoch?}: their holders transfer
                them
       pending  boolean: bound requests may be claimed now
       refused  number
       more     boolean: call again
Errors: PLAN_NOT_FOUND. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 64
  local hash = tx.key:plan(args.planId)
  local field = redis.call('HMGET', hash, 'summary', 'sentMoves')
  if not field[1] then
    return Reply.fail('PLAN_NOT_FOUND', 'There is no plan ' .. args.planId .. ', or it has expired', 'planId')
  end
  local sent = tonumber(field[2])
  local now = tx.now
  local aborts, leases, refused, bound = {}, {}, 0, 0

  -- Why the target takes nothing, or nil. What this page sends there counts.
  local coming = {}
  local function target_refusal(move)
    local target = Servers.get(tx, move.toServerId)
    if not target then return 'server-not-found' end
    if move.toEpoch and move.toEpoch ~= target.epoch then return 'server-changed' end
    if not Servers.is_usable(tx, target) then return 'server-' .. Servers.shown_state(tx, target) end
    if target.load + (coming[target.id] or 0) >= Servers.capacity(tx, target) then return 'server-full' end
  end

  local function request_refusal(request, group, round, move)
    if not request or not group then return 'unknown-request' end
    if request.state == 'finished' or request.state == 'trained' then return 'completed-first' end
    if group.state ~= 'live' or not round or not Rounds.takes_results(round) or request.state == 'cutting' then
      return 'ending'
    end
    local attempt = move.attempt
    if attempt and attempt ~= request.attempt then return 'victim-changed' end
    local at = redis.call('HMGET', tx.key:request(request.id), 'serverId', 'moves')
    if request.state == 'running' and at[1] == move.toServerId then return 'same-server' end
    if tonumber(at[2] or 0) >= args.maxMovesPerRequest and move.purpose ~= 'leave' then return 'moved-too-often' end
  end

  local function bind(request, target_id)
    local target = Servers.get(tx, target_id)
    coming[target_id] = (coming[target_id] or 0) + 1
    redis.call('HSET', tx.key:request(request.id), 'boundServerId', target_id, 'boundServerEpoch', target.epoch,
      'movedAtMs', Format.integer(now))
    redis.call('HINCRBY', tx.key:request(request.id), 'moves', 1)
  end

  local function move_one(move)
    local request = Requests.load(tx, move.requestId)
    local group = request and Rounds.load_group(tx, request.job, request.groupId)
    local round = group and Rounds.load(tx, request.job, group.roundId)
    if group and Aborts.apply(tx, round, group, aborts) then request = Requests.load(tx, move.requestId) end
    local refusal = request_refusal(request, group, round, move) or target_refusal(move)
    if refusal == 'completed-first' then return refusal end
    if refusal then
      refused = refused + 1
      return 'refused:' .. refusal
    end
    bind(request, move.toServerId)
    if request.state == 'pending' then
      bound = bound + 1
      return 'moved'
    end
    redis.call('HSET', tx.key:request(request.id), 'movePlan', args.planId)
    request.movePlan = args.planId
    redis.call('ZADD', tx.key.movingRequests, Format.integer(now), request.id)
    Cancellation.stop_held(tx, request, group, aborts)
    return 'sent'
  end

  -- A lease of a caller that only routes: its holder moves it, and nobody else.
  local function send_lease(move)
    local lease = LeaseTable.named(tx, move.leaseId)
    local refusal = not lease and 'unknown-lease' or lease.serverId == move.toServerId and 'same-server'
      or target_refusal(move)
    if refusal then
      refused = refused + 1
      return 'refused:' .. refusal
    end
    coming[move.toServerId] = (coming[move.toServerId] or 0) + 1
    local epoch = move.toEpoch
    redis.call('HSET', tx.key.movingLeases, move.leaseId,
      table.concat({ args.planId, move.toServerId, epoch or '', Format.integer(now) }, '|'))
    table.insert(leases, { planId = args.planId, leaseId = move.leaseId, workerId = lease.workerId,
      workerEpoch = lease.workerEpoch, targetServerId = move.toServerId, targetEpoch = epoch })
    return 'sent'
  end

  local page = redis.call('LRANGE', tx.key:planMoves(args.planId), sent, sent + PAGE - 1)
  for _, packed in ipairs(page) do
    local move = cjson.decode(packed)
    local lease_id = move.leaseId
    local state = lease_id and send_lease(move) or move_one(move)
    redis.call('HSET', tx.key:planStates(args.planId), lease_id or move.requestId, state)
  end
  redis.call('HINCRBY', hash, 'sentMoves', #page)
  for _, name in ipairs({ hash, tx.key:planMoves(args.planId), tx.key:planStates(args.planId) }) do
    redis.call('PEXPIRE', name, args.keptMs)
  end
  return '{"aborts":' .. Reply.list(aborts) .. ',"leases":' .. Reply.list(leases) .. ',"refused":' .. refused
    .. ',"pending":' .. tostring(bound > 0) .. ',"more":'
    .. tostring(sent + #page < redis.call('LLEN', tx.key:planMoves(args.planId))) .. '}'
end

--[[ Carries out one page of a plan: sends each move whose assumptions still hold, and refuses each other move. A
request without a holder is bound to its target and has moved. A request that a worker has becomes `cutting`, as in a
cut, and is listed for its holder; when the holder confirms, the request is pending and bound. Safe to repeat: a move is
sent once.
ARGV[1] JSON: {planId, maxMovesPerRequest; keptMs: life of the states from now on}
Reply: SentMoves
Errors: PLAN_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 64
  local hash, moves, states = tx.key:plan(args.planId), tx.key:planMoves(args.planId), tx.key:planStates(args.planId)
  local sent = tonumber(redis.call('HGET', hash, 'sentMoves') or nil)
  if not sent then return Moves.no_plan(args.planId) end
  local now = tx.now
  local aborts, leases, refused, bound = {}, {}, 0, 0

  -- Reason why the target takes no move, or nil. Moves that this page has sent to the target count as leases.
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
    -- A sample that was stopped may have ended while its group is live.
    local is_live = Request.LIVE[request.state] and request.state ~= 'cutting'
    if group.state ~= 'live' or not round or not Round.takes_results(round) or not is_live then return 'ending' end
    if move.attempt and move.attempt ~= request.attempt then return 'victim-changed' end
    Request.read_moves(tx, Request.read_times(tx, request))
    if request.state == 'running' and request.serverId == move.toServerId then return 'same-server' end
    if request.moves >= args.maxMovesPerRequest and move.purpose ~= 'leave' then return 'moved-too-often' end
  end

  local function send_request(move)
    local request = Request.load(tx, move.requestId)
    local group = request and Group.load(tx, request.job, request.groupId)
    local round = group and Round.load(tx, request.job, group.roundId)
    if group and Aborts.apply(tx, round, group, aborts) then request = Request.load(tx, move.requestId) end
    local refusal = request_refusal(request, group, round, move) or target_refusal(move)
    if refusal then return refusal end
    local is_pending = request.state == 'pending'
    Request.set(tx, request, { boundServerId = move.toServerId,
      boundServerEpoch = Servers.get(tx, move.toServerId).epoch, movedAtMs = now, moves = request.moves + 1,
      movePlan = not is_pending and args.planId or nil, movedBy = is_pending and args.planId or nil })
    if is_pending then
      bound = bound + 1
      return nil, 'moved'
    end
    redis.call('ZADD', tx.key.movingRequests, Format.integer(now), request.id)
    Cancellation.stop_held(tx, request, group, aborts)
    return nil, 'sent'
  end

  -- Sends the move of a lease whose caller only routes: only its holder can transfer it.
  local function send_lease(move)
    local lease = LeaseTable.named(tx, move.leaseId)
    local refusal = not lease and 'unknown-lease' or lease.serverId == move.toServerId and 'same-server'
      or target_refusal(move)
    if refusal then return refusal end
    local transfer = { planId = args.planId, targetServerId = move.toServerId, targetEpoch = move.toEpoch,
      startedAtMs = now }
    redis.call('HSET', tx.key.movingLeases, move.leaseId, Moves.pack_transfer(transfer))
    table.insert(leases, Moves.transfer(move.leaseId, lease, transfer))
    return nil, 'sent'
  end

  local page = redis.call('LRANGE', moves, sent, sent + PAGE - 1)
  for _, packed in ipairs(page) do
    local move = cjson.decode(packed)
    local refusal, state = (move.leaseId and send_lease or send_request)(move)
    if not refusal then
      coming[move.toServerId] = (coming[move.toServerId] or 0) + 1
    elseif refusal == 'completed-first' then
      state = refusal
    else
      refused, state = refused + 1, 'refused:' .. refusal
    end
    redis.call('HSET', states, move.leaseId or move.requestId, state)
  end
  redis.call('HINCRBY', hash, 'sentMoves', #page)
  for _, name in ipairs({ hash, moves, states }) do redis.call('PEXPIRE', name, args.keptMs) end
  return Reply.object({ aborts = aborts, leases = leases, refused = refused, pending = bound > 0,
    more = sent + #page < redis.call('LLEN', moves) })
end

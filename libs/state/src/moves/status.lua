--[[ A page of a plan with the state of each move. Writes nothing.
ARGV[1] JSON: {planId, cursor, limit}   string, numbers
Reply: PlanPage; sentMoves 0: nothing was executed. states: number of moves of the whole plan by state; moves not sent
  are `planned`
Errors: PLAN_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local moves, states_key = tx.key:planMoves(args.planId), tx.key:planStates(args.planId)
  local field = redis.call('HMGET', tx.key:plan(args.planId), 'summary', 'plannedAtMs', 'sentMoves')
  if not field[1] then return Moves.no_plan(args.planId) end

  -- The holder of a lease confirms nothing: the lease itself shows the state.
  local function lease_state(move)
    local lease = LeaseTable.named(tx, move.leaseId)
    if not lease then return 'completed-first' end
    return lease.serverId == move.toServerId and 'moved' or 'sent'
  end

  local states, counted, cursor = {}, 0, '0'
  repeat
    local scan = redis.call('HSCAN', states_key, cursor, 'COUNT', 1000)
    cursor = scan[1]
    for position = 2, #scan[2], 2 do
      local state = string.match(scan[2][position], '^[^:]+')
      states[state] = (states[state] or 0) + 1
      counted = counted + 1
    end
  until cursor == '0'
  local total = redis.call('LLEN', moves)
  if total > counted then states.planned = total - counted end

  local page = {}
  for _, packed in ipairs(redis.call('LRANGE', moves, args.cursor, args.cursor + args.limit - 1)) do
    local move = cjson.decode(packed)
    local state = redis.call('HGET', states_key, move.leaseId or move.requestId) or 'planned'
    table.insert(page, { move = packed, state = move.leaseId and state == 'sent' and lease_state(move) or state })
  end
  local next_cursor = args.cursor + #page
  return Reply.object({ summary = field[1], plannedAtMs = tonumber(field[2]), sentMoves = tonumber(field[3]),
    moves = total, page = page, cursor = next_cursor < total and next_cursor or nil },
    { states = cjson.encode(states) })
end

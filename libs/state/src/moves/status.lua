--[[ A page of a plan with the state of each move. Writes nothing.
ARGV[1] JSON: {planId, cursor, limit}   string, numbers
Reply: summary      string: as it was kept
       plannedAtMs, sentMoves, moves   numbers; sentMoves 0: nothing was executed
       states       object: state -> number of moves, of the whole plan; those not sent are `planned`
       page         list of {move: JSON string, state}
       cursor       number where the next page starts; absent at the end
Errors: PLAN_NOT_FOUND. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:plan(args.planId), 'summary', 'plannedAtMs', 'sentMoves')
  if not field[1] then
    return Reply.fail('PLAN_NOT_FOUND', 'There is no plan ' .. args.planId .. ', or it has expired', 'planId')
  end

  -- The holder of a lease says nothing to us: the lease itself tells.
  local function lease_state(lease_id, target_id)
    local lease = LeaseTable.named(tx, lease_id)
    if not lease then return 'completed-first' end
    return lease.serverId == target_id and 'moved' or 'sent'
  end

  local states, counted, cursor = {}, 0, '0'
  repeat
    local scan = redis.call('HSCAN', tx.key:planStates(args.planId), cursor, 'COUNT', 1000)
    cursor = scan[1]
    for position = 2, #scan[2], 2 do
      local state = string.match(scan[2][position], '^[^:]+')
      states[state] = (states[state] or 0) + 1
      counted = counted + 1
    end
  until cursor == '0'
  local total = redis.call('LLEN', tx.key:planMoves(args.planId))
  if total > counted then states.planned = total - counted end

  local page = {}
  for _, packed in ipairs(redis.call('LRANGE', tx.key:planMoves(args.planId), args.cursor,
    args.cursor + args.limit - 1)) do
    local move = cjson.decode(packed)
    local lease_id = move.leaseId
    local state = redis.call('HGET', tx.key:planStates(args.planId), lease_id or move.requestId) or 'planned'
    if lease_id and state == 'sent' then state = lease_state(lease_id, move.toServerId) end
    table.insert(page, { move = packed, state = state })
  end
  local next_cursor = args.cursor + #page
  return '{"summary":' .. cjson.encode(field[1]) .. ',"plannedAtMs":' .. field[2] .. ',"sentMoves":' .. field[3]
    .. ',"moves":' .. total .. ',"states":' .. cjson.encode(states) .. ',"page":' .. Reply.list(page)
    .. (next_cursor < total and ',"cursor":' .. next_cursor or '') .. '}'
end

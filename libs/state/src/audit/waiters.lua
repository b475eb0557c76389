--[[ One page of the parked acquires against their lane and deadline; or one page of a lane or of the deadlines against
the parked acquires.
ARGV[1] JSON: {lane?: string; deadlines?: boolean; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local lane, page = Reply.optional(args.lane), nil

  if lane or Reply.optional(args.deadlines) then
    local index = lane and tx.key:serverLane(lane) or tx.key.acquireDeadlines
    page = redis.call('ZSCAN', index, args.cursor, 'COUNT', PAGE)
    for position = 1, #page[2], 2 do
      local waiter = Parked.get(tx, page[2][position])
      if not waiter or (lane and waiter.lane ~= lane) then
        if args.repair then redis.call('ZREM', index, page[2][position]) end
        Findings.add(tx, lane and 'lane-without-waiter' or 'deadline-without-waiter', page[2][position], lane,
          args.repair)
      end
    end
  else
    page = redis.call('HSCAN', tx.key.acquireWaiters, args.cursor, 'COUNT', PAGE)
    for position = 1, #page[2], 2 do
      local waiter = Parked.get(tx, page[2][position])
      local score = redis.call('ZSCORE', tx.key:serverLane(waiter.lane), waiter.acquireId)
      local deadline = redis.call('ZSCORE', tx.key.acquireDeadlines, waiter.acquireId)
      if not deadline or tonumber(score or nil) ~= tonumber(waiter.score) then
        if args.repair then Parked.save(tx, waiter) end
        Findings.add(tx, 'waiter-not-in-lane', waiter.acquireId, waiter.lane, args.repair)
      end
      if redis.call('HEXISTS', tx.key.leases, waiter.acquireId) == 1 then
        Findings.add(tx, 'waiter-with-lease', waiter.acquireId, waiter.lane)
      end
    end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. '}'
end

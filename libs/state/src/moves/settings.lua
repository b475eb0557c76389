--[[ The settings of the rebalancer of a pool, and the turn to plan.
ARGV[1] JSON: {settings, ifVersion, turnMs, isPlanned}   each may be absent
  settings    JSON text to store, with its version
  ifVersion   version that the stored settings must have, otherwise they stay
  turnMs      takes the turn to plan for so long
  isPlanned   true when the caller has made its plan
Reply: settings    string, the stored settings; absent when none were ever set
       turn        true when the caller has the turn
       plannedAtMs number, when a caller last reported that it has made its plan; absent without such a report
Flags: allow-oom ]]
return function(tx, args)
  local stored = redis.call('GET', tx.key.rebalance)
  -- Settings of an earlier release have no version.
  if args.settings and args.ifVersion == (stored and cjson.decode(stored).version or 0) then
    stored = args.settings
    redis.call('SET', tx.key.rebalance, stored)
  end
  local turn = args.turnMs and redis.call('SET', tx.key.rebalanceTurn, '1', 'NX', 'PX', args.turnMs)
  if args.isPlanned then redis.call('SET', tx.key.rebalancePlannedAt, Format.integer(tx.now)) end
  return Reply.object({ settings = stored or nil, turn = turn and true or nil,
    plannedAtMs = tonumber(redis.call('GET', tx.key.rebalancePlannedAt) or nil) })
end

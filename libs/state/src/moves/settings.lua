--[[ The settings of the rebalancer of a pool, and who is to plan next.
ARGV[1] JSON: {settings: JSON text to keep, or absent; turnMs: takes the turn to plan for so long, or absent}
Reply: settings   string, absent when none were ever set
       turn       true when the caller has the turn
Flags: allow-oom ]]
return function(tx, args)
  if args.settings then redis.call('SET', tx.key.rebalance, args.settings) end
  local turn = args.turnMs and redis.call('SET', tx.key.rebalanceTurn, '1', 'NX', 'PX', args.turnMs)
  return Reply.object({ settings = redis.call('GET', tx.key.rebalance) or nil, turn = turn and true or nil })
end

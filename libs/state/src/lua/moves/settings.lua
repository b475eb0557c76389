--[[ The settings of the rebalancer of a pool, and who is to plan next.
ARGV[1] JSON:
  settings    JSON string to keep, or absent
  turnMs      number or absent: takes the turn to plan, which nobody else gets for so long
Reply: settings   string, absent when none were ever set
       turn       true when the caller has the turn
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/keys"
local args = cjson.decode(ARGV[1])
if optional(args.settings) then redis.call('SET', key.rebalance, args.settings) end
local turn = optional(args.turnMs) and redis.call('SET', key.rebalanceTurn, '1', 'NX', 'PX', args.turnMs) and true or nil
return cjson.encode({ settings = redis.call('GET', key.rebalance) or nil, turn = turn })

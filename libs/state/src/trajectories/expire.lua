--[[ Removes the trajectory that was not used for the longest time, if that is more than `idleMs`.
ARGV[1] JSON: {idleMs}   number
Reply: more   true if a trajectory was removed
Flags: allow-oom ]]
return function(tx, args)
  local oldest = redis.call('ZRANGEBYSCORE', tx.key.trajectories, '-inf', Format.integer(tx.now - args.idleMs), 'LIMIT',
    0, 1)[1]
  if oldest then Trajectories.remove(tx, oldest) end
  return Reply.object({ more = oldest ~= nil })
end

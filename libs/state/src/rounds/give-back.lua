--[[ Gives one page of the accepted groups of a cancelled round back to the long-tail queue, or drops these groups.
A page ends with the group that brings it to 32 requests.
ARGV[1] JSON: {job, roundId}
Reply: GiveBackPage
Events: longtail.requeued, group.dropped, round.settled, request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local round = Round.load(tx, args.job, args.roundId)
  local aborts, touched = {}, 0
  while round and round.state == 'cancelled' and touched < PAGE do
    local group_id = redis.call('LPOP', tx.key:roundAccepted(args.job, args.roundId))
    if not group_id then break end
    local group = Group.load(tx, args.job, group_id)
    touched = touched + (group and group.launched or GroupDeletion.MAX_SAMPLES)
    if not group then
      Recovery.lose_live_group(tx, round, group_id)
    else
      Group.set(tx, group, { state = 'live' })
      redis.call('ZADD', tx.key:roundGroups(args.job, args.roundId), group.arrival, group_id)
      local is_aborted = Aborts.apply(tx, round, group, aborts)
      if not is_aborted and group.live == 0 then GroupEnds.settle_group(tx, round, group) end
    end
  end
  return Reply.object({ aborts = aborts, more = touched >= PAGE })
end

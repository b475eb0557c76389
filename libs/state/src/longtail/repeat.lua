--[[ Checks again one page of the groups on their way to the long-tail queue: workers that still have requests of these
groups are asked again to stop, and requests of expired holders end here. A page ends with the group that brings it to
32 requests.
ARGV[1] JSON: {cursor}   number
Reply: LeavingPage
Events: longtail.requeued.
Flags: allow-oom ]]
return function(tx, args)
  local aborts = {}
  local cursor = Pages.walk(tx.key.leavingGroups, args.cursor, function(name)
    local job, group_id = Job.parse_name(name)
    local group = Group.load(tx, job, group_id)
    if not group then
      redis.call('ZREM', tx.key.leavingGroups, name)
      Counts.add_settling(tx, job, -1)
      Recovery.lose_missing_group(tx, job, group_id)
      return 1
    end
    local round, can_continue = Recovery.load_round(tx, group)
    if can_continue and not Aborts.apply(tx, round, group, aborts) then Longtail.cut_live(tx, round, group, aborts) end
    return group.launched
  end)
  return Reply.object({ aborts = aborts, cursor = cursor })
end

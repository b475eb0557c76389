--[[ One page of the groups of a round that is not folded, in the order of their arrival or acceptance.
The set `lost` is in the order in which its groups ended.
ARGV[1] JSON: {job, roundId, set, cursor, limit}: ListGroupsRequest
Reply: ListGroupsReply
Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local limit = args.limit or 128
  local job = args.job
  local round_id, no_round = Trainer.named_round(tx, job, args.roundId)
  if not round_id then return no_round end
  local from = args.cursor or 0
  if args.set == 'lost' then
    local lost = LostGroups.page(tx, job, round_id, from, limit)
    return Reply.object({ cursor = #lost == limit and from + limit or nil }, { groups = Reply.joined(lost) })
  end
  local list = args.set == 'failed' and tx.key:roundFailed(job, round_id)
    or args.set == 'accepted' and tx.key:roundAccepted(job, round_id) or tx.key:roundGroups(job, round_id)
  local ids = redis.call((args.set or 'live') == 'live' and 'ZRANGE' or 'LRANGE', list, from, from + limit - 1)
  local groups = {}
  for _, group_id in ipairs(ids) do
    local group = Group.read_listed(tx, job, group_id)
    group.promptRef = nil
    if group.state then table.insert(groups, group) end
  end
  return Reply.object({ groups = groups, cursor = #ids == limit and from + limit or nil })
end

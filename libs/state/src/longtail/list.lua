--[[ A page of the long-tail queue, oldest first. Writes nothing.
ARGV[1] JSON: {job, cursor, limit}: LongtailListRequest
Reply: LongtailListReply
Errors: JOB_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local limit = args.limit or 128
  if not Job.exists(tx, args.job) then return Trainer.no_job(args.job) end
  local queue, groups, from = tx.key:longtail(args.job), {}, args.cursor or 0
  for position, group_id in ipairs(redis.call('ZRANGE', queue, from, from + limit - 1)) do
    local group = Group.read_listed(tx, args.job, group_id)
    groups[position] = { groupId = group_id, cuts = group.cuts, firstStep = group.firstStep,
      finishedSamples = group.finishedSamples, samples = group.samples, tokens = group.tokens }
  end
  local cursor = from + #groups
  return Reply.object({ groups = groups, cursor = cursor < redis.call('ZCARD', queue) and cursor or nil })
end

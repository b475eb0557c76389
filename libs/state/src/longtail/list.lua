--[[ A page of the long-tail queue, oldest first. Writes nothing.
ARGV[1] JSON: {job, cursor}   cursor: number
Reply: LongtailListReply
Errors: JOB_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  if redis.call('EXISTS', tx.key:job(args.job)) == 0 then return Trainer.no_job(args.job) end
  local queue, groups, from = tx.key:longtail(args.job), {}, args.cursor or 0
  for position, group_id in ipairs(redis.call('ZRANGE', queue, from, from + PAGE - 1)) do
    local field = redis.call('HMGET', tx.key:group(args.job, group_id), 'cuts', 'firstStep', 'finished', 'samples',
      'tokens')
    groups[position] = { groupId = group_id, cuts = tonumber(field[1] or 0), firstStep = tonumber(field[2]),
      finishedSamples = tonumber(field[3]), samples = tonumber(field[4]), tokens = tonumber(field[5] or 0) }
  end
  local cursor = from + #groups
  return Reply.object({ groups = groups, cursor = cursor < redis.call('ZCARD', queue) and cursor or nil })
end

--[[ Drops groups of the long-tail queue: the named groups, or one page of all groups that were in the queue when the
first page was requested. The sweep deletes the dropped groups with their payloads; the counts of the job stay. A page
ends with the group that brings it to 32 requests.
ARGV[1] JSON: {job, reason, trainerEpoch, stamp, groupIds, upTo}: DropLongtailArgs. Without groupIds: all; without upTo:
  up to the last place of the queue now
Reply: DropLongtailPage
       remainingIds    list of groupId: to be sent again
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED. Events: group.dropped, request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local refused = Trainer.refusal(tx, args)
  if refused then return refused end
  Trainer.seen(tx, args.job)

  local reply = { dropped = {}, notQueued = {}, remainingIds = {}, requests = 0, tokens = 0 }
  local function drop(group)
    reply.tokens, reply.requests = reply.tokens + Group.read_made(tx, group).tokens, reply.requests + group.launched
    GroupEnds.drop_group(tx, Round.load(tx, args.job, group.roundId), group, args.reason, nil, {})
    -- No abort needs the requests of the group later, so the sweep may delete them now.
    redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now), Group.format_name(group))
    table.insert(reply.dropped, group.groupId)
  end

  for _, group_id in ipairs(args.groupIds or {}) do
    local group = reply.requests < PAGE and Group.load(tx, args.job, group_id)
    if reply.requests >= PAGE then table.insert(reply.remainingIds, group_id)
    elseif group and group.state == 'unfinished' then drop(group)
    else table.insert(reply.notQueued, group_id) end
  end
  if not args.groupIds then
    local queue = tx.key:longtail(args.job)
    local up_to = args.upTo or tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
    for _, group_id in ipairs(redis.call('ZRANGEBYSCORE', queue, '-inf', up_to, 'LIMIT', 0, PAGE)) do
      if reply.requests >= PAGE then break end
      local group = Group.load(tx, args.job, group_id)
      if group then drop(group) else Recovery.lose_queued(tx, args.job, group_id) end
    end
    reply.upTo = redis.call('ZCOUNT', queue, '-inf', up_to) > 0 and up_to or nil
  end
  return Generation.reply(tx, reply)
end

--[[ Drops groups of the long-tail queue: those named, or one page of all that were in it when the first page was asked
for.
They are deleted with their payloads by the sweep; the counts keep their numbers. A page ends with the group that makes
it 32 requests.
ARGV[1] JSON:
  job, reason    string
  trainerEpoch   string
  stamp          of the trainer, or absent
  groupIds       list of string, or absent: all
  upTo           number of the page before, or absent: the last place of the queue now
Reply: dropped         list of groupId
       notQueued       list of groupId: trained, dropped before, in a round, or never submitted
       requests        number of requests dropped
       tokens          number of tokens dropped with them
       remainingIds    list of groupId: to be sent again
       upTo            number to send with the next page of all; absent at the end
       stamp           string
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED. Events: group.dropped, request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or Trainer.error(tx, args.job,
    args.trainerEpoch)
  if refused then return refused end
  Trainer.seen(tx, args.job)

  local dropped, not_queued, requests, tokens = {}, {}, 0, 0
  local function drop(group)
    tokens = tokens + tonumber(redis.call('HGET', tx.key:group(args.job, group.groupId), 'tokens') or 0)
    requests = requests + group.launched
    Aborts.drop_group(tx, Rounds.load(tx, args.job, group.roundId), group, args.reason, nil, {})
    -- Nobody asks for what they were: the sweep deletes them now.
    redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now), args.job .. '/' .. group.groupId)
    table.insert(dropped, group.groupId)
  end
  local function answer(extra)
    return Generation.stamped(tx, '{"dropped":' .. Reply.list(dropped) .. ',"notQueued":' .. Reply.list(not_queued)
      .. ',"requests":'
      .. Format.integer(requests) .. ',"tokens":' .. Format.integer(tokens) .. extra .. '}')
  end

  local ids = Reply.optional(args.groupIds)
  if ids then
    local done = 0
    for _, group_id in ipairs(ids) do
      if requests >= PAGE then break end
      done = done + 1
      local group = Rounds.load_group(tx, args.job, group_id)
      if group and group.state == 'unfinished' then drop(group) else table.insert(not_queued, group_id) end
    end
    local remaining = {}
    for position = done + 1, #ids do table.insert(remaining, ids[position]) end
    return answer(',"remainingIds":' .. Reply.list(remaining))
  end

  local queue = tx.key:longtail(args.job)
  local up_to = Reply.optional(args.upTo) or tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
  for _, group_id in ipairs(redis.call('ZRANGEBYSCORE', queue, '-inf', Format.integer(up_to), 'LIMIT', 0, PAGE)) do
    if requests >= PAGE then break end
    local group = Rounds.load_group(tx, args.job, group_id)
    if group then drop(group) else Recovery.lose_queued(tx, args.job, group_id) end
  end
  local more = redis.call('ZCOUNT', queue, '-inf', Format.integer(up_to)) > 0
  return answer(more and ',"remainingIds":[],"upTo":' .. Format.integer(up_to) or ',"remainingIds":[]')
end

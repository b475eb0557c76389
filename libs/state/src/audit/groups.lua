--[[ Some groups against their requests: the counters, the long-tail queue, the pending queue and what workers hold.
ARGV[1] JSON: {job; groupIds: list, about 128 requests in all; repair: boolean}
Reply: findings    list of {check, where, says, repaired}
Errors: none. Facts: request.lost, group.dropped, group.failed, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  -- The state of a request is the truth; its group's counters and the indexes follow from it.
  local function mend(...)
    if args.repair then redis.call(...) end
  end
  -- Ends a group that lacks a sample, as every transition that comes across it does.
  local function lose_what_is_gone(group)
    local _, is_lost = Recovery.requests_of(tx, group)
    if not is_lost then return end
    Findings.add(tx, 'request-missing', group.job .. '/' .. group.groupId, '', true)
    Recovery.lose_group(tx, Rounds.load(tx, group.job, group.roundId), group)
  end
  for _, group_id in ipairs(args.groupIds) do
    local group = Rounds.load_group(tx, args.job, group_id)
    if group and args.repair then
      lose_what_is_gone(group)
      group = Rounds.load_group(tx, args.job, group_id)
    end
    local live, finished = 0, 0
    for index = 0, group and group.launched - 1 or -1 do
      local id = Requests.id_of(args.job, group_id, index)
      local request = Requests.load(tx, id)
      if not request then
        Findings.add(tx, 'request-missing', id)
      else
        if Requests.LIVE[request.state] then live = live + 1 end
        if request.state == 'finished' then finished = finished + 1 end
        if Requests.HELD[request.state] and redis.call('SISMEMBER', tx.key:workerAttempts(request.workerId,
          request.workerEpoch),
          id) == 0 then
          mend('SADD', tx.key:workerAttempts(request.workerId, request.workerEpoch), id)
          Findings.add(tx, 'request-not-with-worker', id, request.state, args.repair)
        end
        local queued = redis.call('ZSCORE', tx.key:pending(args.job), id) ~= false
        if queued ~= (request.state == 'pending') then
          if args.repair and queued then redis.call('ZREM', tx.key:pending(args.job), id) end
          if args.repair and not queued then Requests.enqueue(tx, args.job, { id },
            request.attempt ~= Requests.UNCLAIMED) end
          Findings.add(tx, 'request-pending-queue', id, request.state, args.repair)
        end
      end
    end
    if group then
      local where = args.job .. '/' .. group_id
      local says = string.format('live %d, counted %d; finished %d, counted %d', group.live, live, group.finished,
        finished)
      if group.live ~= live or group.finished ~= finished then
        mend('HSET', tx.key:group(args.job, group_id), 'live', live, 'finished', finished)
        Findings.add(tx, 'group-counters', where, says, args.repair)
      end
      local queued = redis.call('ZSCORE', tx.key:longtail(args.job), group_id) ~= false
      if queued ~= (group.state == 'unfinished') then
        if args.repair and queued then redis.call('ZREM', tx.key:longtail(args.job), group_id) end
        local place = redis.call('HGET', tx.key:group(args.job, group_id), 'longtailSequence')
        if args.repair and not queued and place then
          redis.call('ZADD', tx.key:longtail(args.job), Format.integer(Rounds.is_whole(group)
            and place - Longtail.FINISHED_FIRST or place), group_id)
        end
        Findings.add(tx, 'group-longtail-queue', where, group.state, args.repair)
      end
    elseif redis.call('ZSCORE', tx.key:longtail(args.job), group_id) then
      if args.repair then Recovery.lose_queued(tx, args.job, group_id) end
      Findings.add(tx, 'longtail-without-group', args.job .. '/' .. group_id, '', args.repair)
    end
  end
  return '{"findings":' .. Reply.list(tx.findings) .. '}'
end

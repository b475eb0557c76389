--[[ One page of requests that have not ended: requests of the unaccepted groups of a round, in the order of their
arrival, of one group of a job, or requests that a worker has (a scan). A page of a round ends with the group that
brings the requests that were read to 128, or within a group: its cursor is `<score>~<sample>`. Writes nothing but the
clock.
ARGV[1] JSON: {job, roundId, groupId, workerId, state, minAgeMs, cursor, limit}: ListRequestsRequest, with job or
  workerId
Reply: ListRequestsReply
Errors: JOB_NOT_FOUND, ROUND_NOT_FOUND, GROUP_NOT_FOUND, WORKER_NOT_FOUND, VALIDATION_FAILED (cursor).
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local limit = args.limit or PAGE
  local ENDED = { finished = true, trained = true, failed = true, dropped = true }
  local job, worker_id = args.job, args.workerId
  local requests = {}

  local function add(id, group)
    local request = Request.load(tx, id)
    if not request or ENDED[request.state] or (args.state and request.state ~= args.state) then return end
    local status = RequestStatus.of(tx, request, group or Group.load(tx, request.job, request.groupId))
    if (status.ageMs or 0) >= (args.minAgeMs or 0) then table.insert(requests, status) end
  end

  if worker_id then
    local epoch, no_worker = WorkerFence.live_epoch(tx, worker_id)
    if not epoch then return no_worker end
    local page, cursor = Pages.list('SSCAN', tx.key:workerAttempts(worker_id, epoch), args.cursor, PAGE, limit)
    for _, id in ipairs(page) do add(id) end
    return Reply.object({ requests = requests, cursor = cursor })
  end

  local last, sample = string.match(args.cursor or '0', '^(%d+)~?(%d*)$')
  if not last then return Reply.fail('VALIDATION_FAILED', 'The cursor is not of an earlier reply', 'cursor') end

  -- Adds the requests of a group from a sample on; returns the sample that has no room in the page, or nil.
  local function add_group(group, group_id, first)
    for index = first, (group and group.launched or 0) - 1 do
      if #requests == limit then return index end
      add(Request.format_id(job, group_id, index), group)
    end
  end

  if args.groupId then
    if not Job.exists(tx, job) then return Trainer.no_job(job) end
    local group = Group.load(tx, job, args.groupId)
    if not group then
      return Reply.fail('GROUP_NOT_FOUND', 'Job ' .. job .. ' has no group ' .. args.groupId, 'groupId')
    end
    local rest = add_group(group, args.groupId, tonumber(sample) or 0)
    return Reply.object({ requests = requests, cursor = rest and '0~' .. Format.integer(rest) or nil })
  end

  local round_id, no_round = Trainer.named_round(tx, job, args.roundId)
  if not round_id then return no_round end
  local read, from = 0, sample == '' and '(' .. last or last
  local page = redis.call('ZRANGEBYSCORE', tx.key:roundGroups(job, round_id), from, '+inf', 'WITHSCORES', 'LIMIT', 0,
    PAGE)
  for position = 1, #page, 2 do
    local group_id, score = page[position], page[position + 1]
    local group = Group.load(tx, job, group_id)
    local first = score == last and tonumber(sample) or 0
    local rest = add_group(group, group_id, first)
    if rest then
      return Reply.object({ requests = requests, cursor = score .. '~' .. Format.integer(rest) })
    end
    read = read + (group and group.launched or 0) - first
    if position + 1 == 2 * PAGE or read >= PAGE then
      return Reply.object({ requests = requests, cursor = score })
    end
  end
  return Reply.object({ requests = requests })
end

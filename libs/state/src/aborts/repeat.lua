--[[ Looks again at one page of aborts that are not confirmed: groups with requests a worker still has (aborted ones,
samples that were stopped alone, and surplus siblings of those that have all their samples), and leases without a
request of ours. Those of expired holders end here; those whose holders have had their time are listed as overdue too.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {groupCursor, leaseCursor, deadlineMs}   numbers; 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       leases          list of {leaseId, requestId, workerId, workerEpoch}
       groupCursor, leaseCursor   where the next page starts; absent when there is none
       overdue         list of {requestId, attempt} of which the deadline has passed
       overdueLeases   list of {leaseId, serverId, epoch} of which the deadline has passed
Errors: none. Events: request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local now = tx.now
  local aborts, leases, overdue, overdue_leases, touched, seen, remaining = {}, {}, {}, {}, 0, 0, 0
  local function is_overdue(started_at) return now - tonumber(started_at) > args.deadlineMs end

  local groups = redis.call('ZRANGE', tx.key.abortingGroups, args.groupCursor, args.groupCursor + PAGE - 1,
    'WITHSCORES')
  for position = 1, #groups, 2 do
    if touched >= PAGE then break end
    seen = seen + 1
    local job, group_id = string.match(groups[position], '^([^/]+)/(.+)$')
    local group = Rounds.load_group(tx, job, group_id)
    local round, can_go_on
    if group then round, can_go_on = Recovery.round_of(tx, group) end
    local first, stopped = #aborts + 1, {}
    touched = touched + (group and group.launched or 1)
    -- Only samples that were stopped alone, while the others of the group are wanted.
    local function is_unwanted(request)
      stopped[request.id] = request.stopped
      return request.stopped or Rounds.is_whole(group)
    end
    if group and group.state == 'aborting' then
      Aborts.end_aborting(tx, round, group, aborts)
    elseif can_go_on and not Aborts.apply(tx, round, group, aborts) then
      Cancellation.stop_live(tx, round, group, aborts, function(request)
        Longtail.end_surplus(tx, round, group, request, nil, 0)
      end, is_unwanted)
    end
    for index = first, is_overdue(groups[position + 1]) and #aborts or 0 do
      local one = aborts[index]
      if group.state == 'aborting' or stopped[one.requestId] then
        table.insert(overdue, { requestId = one.requestId, attempt = one.attempt })
      end
    end
    -- Confirmed, settled or folded meanwhile.
    if #aborts < first and not (group and group.state == 'aborting') then
      redis.call('ZREM', tx.key.abortingGroups, groups[position])
    end
    if redis.call('ZSCORE', tx.key.abortingGroups, groups[position]) then remaining = remaining + 1 end
  end
  local group_cursor = args.groupCursor + remaining
  local more_groups = seen > 0 and group_cursor < redis.call('ZCARD', tx.key.abortingGroups)

  local kept = 0
  local held = redis.call('ZRANGE', tx.key.abortingLeases, args.leaseCursor, args.leaseCursor + PAGE - 1, 'WITHSCORES')
  for position = 1, #held, 2 do
    local seq, acquire_id, id, worker_id, worker_epoch = string.match(held[position],
      '^(%d+)|([^|]*)|([^|]*)|([^|]*)|(%w+)$')
    local packed = redis.call('HGET', tx.key.leases, acquire_id)
    local is_held = packed and string.sub(packed, 1, #seq + 1) == seq .. '|'
      and WorkerFence.is_current(tx, worker_id, worker_epoch)
    if is_held then
      kept = kept + 1
      if is_overdue(held[position + 1]) then
        local server_id, epoch = string.match(packed, '^%d+|([^|]*)|(%w+)|')
        table.insert(overdue_leases, { leaseId = seq .. '.' .. acquire_id, serverId = server_id, epoch = epoch })
      end
      table.insert(leases, { leaseId = seq .. '.' .. acquire_id, requestId = id, workerId = worker_id,
        workerEpoch = worker_epoch })
    else
      redis.call('ZREM', tx.key.abortingLeases, held[position])
    end
  end
  local lease_cursor = args.leaseCursor + kept
  local more_leases = #held > 0 and lease_cursor < redis.call('ZCARD', tx.key.abortingLeases)
  return '{"aborts":' .. Reply.list(aborts) .. ',"leases":' .. Reply.list(leases) .. ',"overdue":'
    .. Reply.list(overdue)
    .. ',"overdueLeases":' .. Reply.list(overdue_leases)
    .. (more_groups and ',"groupCursor":' .. Format.integer(group_cursor) or '')
    .. (more_leases and ',"leaseCursor":' .. Format.integer(lease_cursor) or '')
    .. '}'
end

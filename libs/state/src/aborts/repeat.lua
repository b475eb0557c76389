--[[ Checks again one page of unconfirmed aborts: groups with requests that a worker still has (requests of aborted
groups, samples that were stopped alone, and surplus siblings in whole groups), and leases of callers that only route.
Requests and leases of expired holders end here. An abort that its holder has not confirmed by the deadline is also
listed as overdue. A page ends with the group that brings it to 32 requests.
ARGV[1] JSON: {cursor, deadlineMs}   {groups, leases}: numbers; number
Reply: RepeatPage
Events: request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local END = 2 ^ 40 -- behind every list: a list that was read to its end is not read again
  local cursor = args.cursor or {}
  local aborts, leases, overdue, overdue_servers, overdue_leases = {}, {}, {}, {}, {}
  local function is_overdue(started_at) return tx.now - started_at > args.deadlineMs end

  local function add_servers(request_id)
    for _, acquire_id in ipairs(RequestLeases.some(tx, request_id)) do
      local packed = LeaseTable.packed(tx, acquire_id)
      local lease = packed and LeaseRecord.unpack(packed)
      if lease then
        table.insert(overdue_servers, { requestId = request_id, serverId = lease.serverId, epoch = lease.serverEpoch })
      end
    end
  end

  local function repeat_group(name, started_at)
    local job, group_id = Job.parse_name(name)
    local group = Group.load(tx, job, group_id)
    local first, stopped = #aborts + 1, {}
    if group then
      local round, can_continue = Recovery.load_round(tx, group)
      -- Until the group is whole, only samples that were stopped alone are unwanted.
      local function is_unwanted(request)
        stopped[request.id] = request.stopped
        return request.stopped or Group.is_whole(group)
      end
      if group.state == 'aborting' then
        Aborts.end_aborting(tx, round, group, aborts)
      elseif can_continue and not Aborts.apply(tx, round, group, aborts) then
        GroupEnds.stop_live(tx, round, group, aborts, function(request)
          Longtail.end_surplus(tx, round, group, request, nil, 0)
        end, is_unwanted)
      end
    end
    local is_aborting = group and group.state == 'aborting'
    for index = first, is_overdue(started_at) and #aborts or 0 do
      local one = aborts[index]
      if is_aborting or stopped[one.requestId] then
        table.insert(overdue, { requestId = one.requestId, attempt = one.attempt })
        add_servers(one.requestId)
      end
    end
    -- The holders have confirmed the abort, or the group was settled or folded.
    if #aborts < first and not is_aborting then redis.call('ZREM', tx.key.abortingGroups, name) end
    return group and group.launched or 1
  end

  local function repeat_lease(lease_id, started_at)
    local lease = LeaseTable.named(tx, lease_id)
    if not lease or not WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch) then
      redis.call('ZREM', tx.key.abortingLeases, lease_id)
      return 1
    end
    table.insert(leases, LeaseTable.fence(lease_id, lease))
    if is_overdue(started_at) then
      table.insert(overdue_leases, { leaseId = lease_id, serverId = lease.serverId, epoch = lease.serverEpoch })
    end
    return 1
  end

  local group_cursor = Pages.walk(tx.key.abortingGroups, cursor.groups, repeat_group)
  local lease_cursor = Pages.walk(tx.key.abortingLeases, cursor.leases, repeat_lease)
  return Reply.object({ aborts = aborts, leases = leases, overdue = overdue,
    overdueServers = overdue_servers, overdueLeases = overdue_leases,
    cursor = (group_cursor or lease_cursor) and { groups = group_cursor or END, leases = lease_cursor or END } or nil })
end

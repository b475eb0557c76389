-- Aborts the groups, requests, leases and parked acquires that an abort selects. A page is {abortId, upTo, aborts,
-- leases, answers, touched}: the lists of SelectPage, and the amount of work of the page so far.
local Selection = {}

Selection.PAGE = 64 -- dropping a group takes some 25 commands

-- Remembers a name: requests or groups that are submitted under the name later are aborted.
function Selection.bury(tx, name)
  redis.call('ZADD', tx.key.abortTombstones, Format.integer(tx.now + GroupEnds.kept_ms(tx)), name)
end

-- Refuses acquires of a request that arrive within `for_ms`, unless a later page finds the request.
function Selection.bury_acquires(tx, id, for_ms)
  redis.call('ZADD', tx.key.abortedAcquires, Format.integer(tx.now + for_ms), id)
  local left_ms = redis.call('PTTL', tx.key.abortedAcquires)
  redis.call('PEXPIRE', tx.key.abortedAcquires, Format.integer(math.max(for_ms, left_ms)))
end

function Selection.group(tx, page, group)
  local round, can_continue = Recovery.load_round(tx, group)
  if not can_continue then return end
  page.touched = page.touched + group.launched
  Aborts.abort_group(tx, round, group, page.abortId, page.aborts)
  Aborts.record_group(tx, page.abortId, group)
end

local function select_request(tx, page, request, scope)
  page.touched = page.touched + 1
  Aborts.record(tx, page.abortId, 'R', request.id)
  local group, round = Recovery.load_owners(tx, request)
  if not group or not Group.may_be_aborted(group) then return end
  if request.state == 'finished' or request.state == 'failed' or request.state == 'dropped' then return end
  page.touched = page.touched + group.launched
  Aborts.abort_request(tx, round, group, request, page.abortId, scope, page.aborts)
end

-- Selects requests by the ids of a step until the page is full. Returns the ids of unknown requests.
function Selection.ids(tx, page, step)
  local unknown = {}
  while #step.ids > 0 and page.touched < Selection.PAGE do
    local id = table.remove(step.ids, 1)
    local request = Request.load(tx, id)
    if request then select_request(tx, page, request, step.scope) else table.insert(unknown, id) end
  end
  return unknown
end

-- Selects groups of a zset in the order of their scores, which only grow. `round`: the round of these live groups; nil
-- for the long-tail queue. True when no group is left.
function Selection.groups(tx, page, step, zset, round)
  local found = redis.call('ZRANGEBYSCORE', zset, '(' .. Format.integer(step.cursor or -1), '+inf', 'WITHSCORES',
    'LIMIT', 0, Selection.PAGE)
  for position = 1, #found, 2 do
    if page.touched >= Selection.PAGE then return false end
    step.cursor = tonumber(found[position + 1])
    local group = Group.load(tx, step.job, found[position])
    page.touched = page.touched + (group and 1 or GroupDeletion.MAX_SAMPLES)
    if not group and round then Recovery.lose_live_group(tx, round, found[position])
    elseif not group then Recovery.lose_queued(tx, step.job, found[position])
    elseif group.arrival <= page.upTo and Group.may_be_aborted(group) then Selection.group(tx, page, group) end
  end
  return #found < 2 * Selection.PAGE
end

-- Whether a step selects this lease or parked acquire.
function Selection.matches(tx, step, lease)
  if not step.wanted then
    return (not step.workerId or step.workerId == lease.workerId)
      and (not step.serverId or step.serverId == lease.serverId)
      and (not step.sessionId or step.sessionId == lease.sessionId)
  end
  if not step.wanted[lease.requestId] then return false end
  step.wanted[lease.requestId] = 1
  redis.call('ZREM', tx.key.abortedAcquires, lease.requestId)
  return true
end

-- True when the worker of the lease has claimed the request, so that the counts have the request.
local function is_claimed(tx, lease)
  return Request.is_claimed_by(tx, lease.requestId, lease.workerId, lease.workerEpoch)
end

function Selection.lease(tx, page, step, acquire_id, lease)
  if is_claimed(tx, lease) then
    if step.known then table.insert(step.ids, lease.requestId) end
    return
  end
  local id = Format.integer(lease.seq) .. '.' .. acquire_id
  Aborts.record(tx, page.abortId, 'L', id, lease.requestId)
  -- The load-balancer returns leases of an expired epoch.
  if not WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch) then return end
  redis.call('ZADD', tx.key.abortingLeases, 'NX', Format.integer(tx.now), id)
  table.insert(page.leases, LeaseTable.fence(id, lease))
end

-- Ends the wait of a parked acquire. A repeat of the acquire is refused too.
function Selection.waiter(tx, page, step, waiter)
  Parked.remove(tx, waiter)
  redis.call('SET', tx.key:released(waiter.acquireId), Parked.ABORTED_TOMBSTONE, 'PX', Parked.TOMBSTONE_MS)
  table.insert(page.answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'ABORTED' })
  if step.ofAbortedGroups then return end
  if not is_claimed(tx, waiter) then
    Aborts.record(tx, page.abortId, 'W', waiter.requestId)
  elseif step.known then
    table.insert(step.ids, waiter.requestId)
  end
end

return Selection

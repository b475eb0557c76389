--[[ Stops one page of the running requests, for a change of weights in mode `abort`, or for any change after its
deadline, when the weights that further tokens would have are unknown. Requests become `cutting`, as in a cut, and are
listed for an abort command; their tokens are kept, and they are pending again when the command is confirmed. Leases
without a claimed request are listed for their holders. To be repeated from the start until no lease is left.
ARGV[1] JSON: {syncId; cursor: string; fenceAfterMs: after so long servers are listed instead of holders}
Reply: StopPage
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local sync = Weights.sync(tx)
  local stops_at = sync and (sync.mode == 'abort' and sync.startedAtMs or sync.deadlineAtMs)
  if not sync or sync.syncId ~= args.syncId or tx.now < stops_at then
    return Reply.object({ aborts = {}, leases = {}, fences = {} })
  end

  local is_overdue = tx.now - stops_at > args.fenceAfterMs
  local aborts, leases, fences = {}, {}, {}
  local page, cursor = Pages.scan('HSCAN', tx.key.leases, args.cursor, PAGE)
  for position = 1, #page, 2 do
    local lease = LeaseRecord.unpack(page[position + 1])
    -- Leases of an expired epoch are returned by the load-balancer.
    local is_live = WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch)
    if is_live and is_overdue then
      table.insert(fences, { serverId = lease.serverId, epoch = lease.serverEpoch })
    elseif is_live then
      local request = Request.load(tx, lease.requestId)
      if not request or request.workerId ~= lease.workerId or request.workerEpoch ~= lease.workerEpoch then
        table.insert(leases, LeaseTable.fence(Format.integer(lease.seq) .. '.' .. page[position], lease))
      elseif Request.HELD[request.state] then
        Cancellation.stop_held(tx, request, {}, aborts)
      end
    end
  end
  return Reply.object({ aborts = aborts, leases = leases, fences = fences, cursor = cursor })
end

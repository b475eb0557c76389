--[[ One page of stopping what runs, for a change of weights in mode `abort`: requests become `cutting`, as in a cut,
and are listed for an abort command; their tokens are kept, and they are pending again once it is confirmed. Leases
without a request of ours are listed for their holders. To be repeated from the start until no lease is left.
ARGV[1] JSON:
  syncId, cursor   strings; cursor '0' to begin
  fenceAfterMs     number: holders that have not ended for so long are not told any more, but their servers listed
Reply: aborts   list of {requestId, attempt, workerId, workerEpoch}
       leases   list of {leaseId, requestId, workerId, workerEpoch}
       fences   list of {serverId, epoch}
       cursor   string, '0' at the end
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local sync = WeightSync.load(tx)
  if not sync or sync.syncId ~= args.syncId or sync.mode ~= 'abort' then
    return '{"aborts":[],"leases":[],"fences":[],"cursor":"0"}'
  end

  local is_overdue = tx.now - sync.startedAtMs > args.fenceAfterMs
  local aborts, leases, fences = {}, {}, {}
  local page = redis.call('HSCAN', tx.key.leases, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local lease = LeaseRecord.unpack(page[2][position + 1])
    local id, worker_id, worker_epoch = lease.requestId, lease.workerId, lease.workerEpoch
    -- What an expired epoch holds is returned by the load-balancer.
    local is_live = WorkerFence.is_current(tx, worker_id, worker_epoch)
    if is_live and is_overdue then
      table.insert(fences, { serverId = lease.serverId, epoch = lease.serverEpoch })
    elseif is_live then
      local request = Requests.load(tx, id)
      if not request or request.workerId ~= worker_id or request.workerEpoch ~= worker_epoch then
        table.insert(leases, { leaseId = Format.integer(lease.seq) .. '.' .. page[2][position], requestId = id,
          workerId = worker_id, workerEpoch = worker_epoch })
      elseif Requests.HELD[request.state] then
        Cancellation.stop_held(tx, request, {}, aborts)
      end
    end
  end
  return '{"aborts":' .. Reply.list(aborts) .. ',"leases":' .. Reply.list(leases) .. ',"fences":' .. Reply.list(fences)
    .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end

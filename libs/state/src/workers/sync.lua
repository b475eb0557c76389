--[[ One page of the leases or attempts of a worker epoch; a scan (Pages.scan). The first page of the leases answers a
request for a sync.
ARGV[1] JSON: {workerId, workerEpoch; kind: leases or attempts; cursor: string}
Reply: SyncWorkerReply
Errors: WORKER_NOT_FOUND, FENCED. Events: request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) then
    return Reply.fail(WorkerFence.expired_worker(tx, args.workerId))
  end
  -- The request ends here and not with the heartbeat that passes it on, because the reply to a heartbeat may be lost.
  local is_leases = args.kind == 'leases'
  if is_leases and (args.cursor or '0') == '0' then redis.call('HDEL', tx.key:worker(args.workerId), 'syncAsked') end
  local index = is_leases and tx.key:workerLeases(args.workerId, args.workerEpoch)
    or tx.key:workerAttempts(args.workerId, args.workerEpoch)
  local page, cursor = Pages.scan('SSCAN', index, args.cursor, PAGE)
  local items = {}
  for _, id in ipairs(page) do
    if is_leases then
      local packed = redis.call('HGET', tx.key.leases, id)
      if packed then
        local lease = LeaseRecord.unpack(packed)
        table.insert(items, { id = string.format('%.0f.%s', lease.seq, id), sinceMs = lease.grantedAtMs })
      end
    else
      local request = Request.load(tx, id)
      if not request then
        Recovery.lose_missing(tx, id, index)
      elseif not Attempts.forget_entry(tx, request, args.workerId, args.workerEpoch) then
        local claimed_at = Request.read_times(tx, request).claimedAtMs
        table.insert(items, { id = id, attempt = request.attempt, sinceMs = claimed_at or 0 })
      end
    end
  end
  return Reply.object({ items = items, cursor = cursor })
end

--[[ Ends a worker epoch; the sweepers return its leases and attempts.
ARGV[1] JSON: {workerId, workerEpoch}
Reply: DeregisterWorkerReply; false when the epoch was expired before
Errors: WORKER_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) then
    local code, message, field = WorkerFence.expired_worker(tx, args.workerId)
    return code == 'FENCED' and '{"deregistered":false}' or Reply.fail(code, message, field)
  end
  Workers.expire_epoch(tx, args.workerId, args.workerEpoch)
  return '{"deregistered":true}'
end

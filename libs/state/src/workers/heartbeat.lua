--[[ Keeps a worker epoch alive, with all its leases and attempts, and returns its counts of both. Records the signs
that the worker has seen of its servers.
ARGV[1] JSON: {workerId, workerEpoch; servers: list of ServerSigns, at most 128; silentAfterMs, prefillTokensPerSecond:
  SilenceLimits}
Reply: WorkerHeartbeatReply; leaseDigest: string, the sum of the sequences, not yet reduced modulo 2^40
Errors: WORKER_NOT_FOUND, FENCED (the epoch is expired): register again.
Flags: allow-oom ]]
return function(tx, args)
  if not WorkerFence.is_current(tx, args.workerId, args.workerEpoch) then
    return Reply.fail(WorkerFence.expired_worker(tx, args.workerId))
  end
  local now = tx.now
  local known = redis.call('HMGET', tx.key:worker(args.workerId), 'ttlMs', 'leaseDigest', 'syncAsked')
  Workers.keep(tx, args.workerId, tonumber(known[1]), now)
  Breaker.note_reports(tx, args.servers, args, tonumber(known[1]))
  return cjson.encode({
    serverTimeMs = now,
    generation = (Generation.current(tx)),
    ttlMs = tonumber(known[1]),
    leaseCount = redis.call('SCARD', tx.key:workerLeases(args.workerId, args.workerEpoch)),
    leaseDigest = known[2],
    attemptCount = redis.call('SCARD', tx.key:workerAttempts(args.workerId, args.workerEpoch)),
    syncAsked = known[3] and true or nil,
  })
end

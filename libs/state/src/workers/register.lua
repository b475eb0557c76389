--[[ Gives a worker a new epoch and expires the epoch before, with all its leases and attempts.
ARGV[1] JSON: {workerId, registrationId, ttlMs, newEpoch}: the same registrationId of a live epoch gets the same answer
Reply: RegisterWorkerReply
Errors: FENCED: a repeat of an earlier registration arrives late, after a newer registration.
Flags: allow-oom ]]
return function(tx, args)
  local now = tx.now
  local known = redis.call('HMGET', tx.key:worker(args.workerId), 'liveEpoch', 'registrationId')
  local epoch = known[1]
  if epoch and known[2] ~= args.registrationId and Workers.was_registered(tx, args.workerId, args.registrationId) then
    return Reply.fail('FENCED', 'The worker has registered again since this registration was sent', 'registrationId')
  end
  if not epoch or known[2] ~= args.registrationId then
    if epoch then Workers.expire_epoch(tx, args.workerId, epoch) end
    epoch = args.newEpoch
  end
  redis.call('HSET', tx.key:worker(args.workerId), 'liveEpoch', epoch, 'registrationId', args.registrationId,
    'ttlMs', args.ttlMs)
  redis.call('HSETNX', tx.key:worker(args.workerId), 'leaseDigest', 0)
  redis.call('HSETNX', tx.key:worker(args.workerId), 'registeredAtMs', Format.integer(now))
  Workers.keep(tx, args.workerId, args.ttlMs, now)
  return '{"workerEpoch":"' .. epoch .. '","ttlMs":' .. args.ttlMs .. ',"serverTimeMs":' .. Format.integer(now) .. '}'
end

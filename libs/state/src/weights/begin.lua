--[[ Starts a change of the weights of a pool by one flag: no lease is granted and no request claimed until it ends.
ARGV[1] JSON: {syncId, version, mode, deadlineMs, job, trainerEpoch, stamp}: BeginSyncArgs. A repeat with the syncId
  gets the status of the change, under way or ended; a change under way gets the deadline deadlineMs from now, unless
  its deadline is later. With a job only its trainer, or a trainer that took over, may end the change
Reply: WeightSync of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, VALIDATION_FAILED (the syncId was used for another change),
  WEIGHT_SYNC_CONFLICT, WEIGHT_VERSION_STALE. Events: weights.begun.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Generation.stamp_error(tx, args.stamp) or args.job and Trainer.error(tx, args.job, args.trainerEpoch)
  if refused then return refused end

  local function meant_this(sync) return sync.version == args.version and sync.mode == args.mode end
  local reused = Reply.fail('VALIDATION_FAILED', 'The syncId was used for another change of weights', 'syncId')

  local ended = redis.call('GET', tx.key:endedSync(args.syncId))
  if ended then return meant_this(cjson.decode(ended)) and Generation.stamped(tx, ended) or reused end
  local sync = Weights.sync(tx)
  if sync and sync.syncId == args.syncId then
    if not meant_this(sync) then return reused end
    sync.deadlineAtMs = math.max(sync.deadlineAtMs, tx.now + args.deadlineMs)
    Hashes.set(tx.key.weightSync, { deadlineAtMs = sync.deadlineAtMs })
    return Generation.stamped(tx, Weights.sync_json(tx, sync, 'begun'))
  end
  if sync then
    return Reply.fail('WEIGHT_SYNC_CONFLICT', 'The weights are being changed to version '
      .. Format.integer(sync.version) .. ' by ' .. sync.syncId, 'syncId', 500)
  end
  local from = Weights.version(tx)
  if args.version < from then
    return Reply.fail('WEIGHT_VERSION_STALE', 'The pool has version ' .. Format.integer(from)
      .. ': load earlier weights under a new number, for example ' .. Format.integer(from + 1), 'version')
  end

  -- The gate after a rollback: the present gate, or the version that all servers have; absent for several versions.
  local oldest = redis.call('ZRANGE', tx.key.serverVersions, 0, 0, 'WITHSCORES')[2]
  local gate = redis.call('HGET', tx.key.settings, 'requiredWeightVersion') or tonumber(oldest) == from and from or nil
  Hashes.set(tx.key.weightSync, { syncId = args.syncId, version = args.version, mode = args.mode, fromVersion = from,
    startedAtMs = tx.now, deadlineAtMs = tx.now + args.deadlineMs, job = args.job,
    trainerEpoch = args.job and args.trainerEpoch, gateBefore = gate })
  redis.call('HSET', tx.key.settings, 'syncing', args.version, 'weightsBeganMs', WeightClock.next(tx))
  if args.mode == 'keep' then
    redis.call('HSET', tx.key.weights, 'keptVersion', args.version)
    redis.call('HDEL', tx.key.weights, 'keptUntilMs')
  end
  Events.add(tx, 'weights.begun', { syncId = args.syncId, version = args.version, mode = args.mode,
    fromVersion = from })
  return Generation.stamped(tx, Weights.sync_json(tx, Weights.sync(tx), 'begun'))
end

--[[ Ends a change of weights. After a commit, servers that do not report the new version are quarantined until they do.
After a rollback, the same holds for the version that all servers had before the change. At the deadline it is unknown
how much of the new weights the engines have: first all running requests are stopped (weights/stop), then the change
ends; weights of servers that were not reported since its start are unknown, and such a server takes no leases until its
weights are reported. The pool continues, unless it is paused by hand.
ARGV[1] JSON: {syncId, outcome, reason, trainerEpoch, stamp; overdueOnly: do nothing before the deadline, or while
  requests run}: EndSyncArgs
Reply: WeightSync of the protocol, with a stamp; state 'begun' when `overdueOnly` had nothing to do
Errors: GENERATION_CHANGED, WEIGHT_SYNC_NOT_FOUND, JOB_NOT_FOUND, FENCED, WEIGHT_SYNC_ENDED (with another outcome),
  WEIGHTS_NOT_QUIESCED (a commit while requests run that were to be stopped or waited for).
Events: weights.committed, weights.rolled-back.
Flags: allow-oom ]]
return function(tx, args)
  local epoch = args.trainerEpoch
  local changed = Generation.stamp_error(tx, args.stamp)
  if changed then return changed end

  local ended = redis.call('GET', tx.key:endedSync(args.syncId))
  if ended then
    local known = cjson.decode(ended)
    local refused = known.job and epoch and Trainer.error(tx, known.job, epoch)
    if refused then return refused end
    if known.state == args.outcome then return Generation.stamped(tx, ended) end
    return Reply.fail('WEIGHT_SYNC_ENDED', 'The change of weights is ' .. known.state .. ': ' .. known.reason, 'syncId')
  end
  local sync = Weights.sync(tx)
  if not sync or sync.syncId ~= args.syncId then
    return Reply.fail('WEIGHT_SYNC_NOT_FOUND', 'There is no change of weights ' .. args.syncId, 'syncId')
  end
  local now, running = tx.now, redis.call('HLEN', tx.key.leases)
  if args.overdueOnly then
    local is_due = now >= sync.deadlineAtMs and running == 0
    if not is_due then return Generation.stamped(tx, Weights.sync_json(tx, sync, 'begun')) end
  elseif sync.job then
    local refused = Trainer.error(tx, sync.job, epoch or sync.trainerEpoch)
    if refused then return refused end
  end
  local committed = args.outcome == 'committed'
  if committed and sync.mode ~= 'keep' and running > 0 then
    return Reply.fail('WEIGHTS_NOT_QUIESCED', Format.integer(running) .. ' requests still run with the old weights',
      nil, 100)
  end

  local gate = committed and Format.integer(sync.version) or sync.gateBefore
  if gate and redis.call('HGET', tx.key.settings, 'requiredWeightVersion') ~= gate then
    redis.call('HSET', tx.key.settings, 'requiredWeightVersion', gate, 'sinceMs', Format.integer(now))
  end
  if args.reason == 'deadline' then
    local began = redis.call('HGET', tx.key.settings, 'weightsBeganMs')
    redis.call('HSET', tx.key.settings, 'weightsUnknownBeforeMs', began or Format.integer(sync.startedAtMs))
  end
  -- The new revision makes the load-balancer score every server by the changed settings.
  redis.call('HINCRBY', tx.key.settings, 'version', 1)
  if committed then redis.call('HSET', tx.key.weights, 'version', Format.integer(sync.version)) end
  if sync.mode == 'keep' then redis.call('HSET', tx.key.weights, 'keptUntilMs', Format.integer(now)) end
  redis.call('HDEL', tx.key.settings, 'syncing')
  redis.call('DEL', tx.key.weightSync)
  local answer = Weights.sync_json(tx, sync, args.outcome, now, args.reason)
  redis.call('SET', tx.key:endedSync(args.syncId), answer, 'PX', Weights.ENDED_KEPT_MS)
  Events.add(tx, 'weights.' .. args.outcome, { syncId = sync.syncId, version = sync.version, reason = args.reason })
  return Generation.stamped(tx, answer)
end

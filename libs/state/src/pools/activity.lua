--[[ Reads whether a pool has work for periodic tasks, and its uses that speak against deleting it.
Reply: PoolActivity
Flags: no-writes ]]
return function(tx)
  local LOADING_MS = 3600000 -- engines that load for longer are probed again when the pool is used
  local USES = {
    { tx.key.usableServers, 'servers that take leases' }, { tx.key.workers, 'live workers' },
    { tx.key.leases, 'leases' }, { tx.key.acquireWaiters, 'waiting acquires' },
    { tx.key.claimWaiters, 'waiting claims' }, { tx.key.openJobs, 'open rounds' },
  }
  local uses = {}
  for _, use in ipairs(USES) do
    if redis.call('EXISTS', use[1]) == 1 then table.insert(uses, use[2]) end
  end
  local awake = #uses > 0 or redis.call('XLEN', tx.key.events) > 0
    or redis.call('ZCOUNT', tx.key.pendingServers, redis.call('TIME')[1] * 1000 - LOADING_MS, '+inf') > 0
    or redis.call('EXISTS', tx.key.watchedServers, tx.key.expiredLeaseEpochs, tx.key.expiredAttemptEpochs,
      tx.key.sweeps, tx.key.roundDeadlines, tx.key.aborts, tx.key.abortingGroups, tx.key.abortingLeases,
      tx.key.leavingGroups, tx.key.droppedGroups, tx.key.oldSnapshots, tx.key.movingRequests, tx.key.movingLeases,
      tx.key.weightSync, tx.key.pausedEngines, tx.key.nextEligible, tx.key.freedPayloads, tx.key.awaitingPayloads) > 0
  return cjson.encode({
    awake = awake, servers = redis.call('ZCARD', tx.key.servers), jobs = redis.call('SCARD', tx.key.jobs),
    lastMs = tonumber(redis.call('HGET', tx.key.meta, 'clockMs') or 0),
  }):sub(1, -2) .. ',"inUse":' .. Reply.list(uses) .. '}'
end

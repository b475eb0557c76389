--[[ Totals of the pool.
Reply: PoolTotals
Flags: no-writes ]]
return function(tx)
  return cjson.encode({
    paused = Settings.get(tx, 'paused') == '1',
    pausedUntilMs = Settings.number(tx, 'pausedUntilMs'),
    setBackAtMs = Generation.set_back_at_ms(tx),
    servers = redis.call('ZCARD', tx.key.servers),
    readyServers = redis.call('SCARD', tx.key.usableServers),
    leases = redis.call('HLEN', tx.key.leases),
    sessions = redis.call('HLEN', tx.key.sessions),
    sessionsEvicted = tonumber(redis.call('HGET', tx.key.meta, 'sessionsEvicted') or nil) or 0,
    pausedSessions = redis.call('ZCARD', tx.key.pausedSessions),
    sessionPauses = tonumber(redis.call('HGET', tx.key.meta, 'sessionPauses') or nil) or 0,
    pausedSessionWaiters = redis.call('ZCARD', tx.key:serverLane(Admission.PAUSED_LANE)),
    newSessionWaiters = redis.call('ZCARD', tx.key:serverLane(Admission.NEW_LANE)),
    slowScans = tonumber(redis.call('HGET', tx.key.meta, 'slowScans') or nil) or 0,
    waiters = redis.call('HLEN', tx.key.acquireWaiters),
    workers = redis.call('ZCARD', tx.key.workers),
    expiredEpochs = redis.call('SCARD', tx.key.expiredLeaseEpochs),
  })
end

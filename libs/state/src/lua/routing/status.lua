--[[ Totals of the pool.
ARGV[1] JSON: {}
Reply: servers, readyServers, leases, sessions, sessionsEvicted, slowScans, waiters, workers, voidEpochs
       numbers
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/keys"
return cjson.encode({
  servers = redis.call('ZCARD', key.servers),
  readyServers = redis.call('SCARD', key.usableServers),
  leases = redis.call('HLEN', key.leases),
  sessions = redis.call('HLEN', key.sessions),
  sessionsEvicted = tonumber(redis.call('HGET', key.meta, 'sessionsEvicted') or nil) or 0,
  slowScans = tonumber(redis.call('HGET', key.meta, 'slowScans') or nil) or 0,
  waiters = redis.call('HLEN', key.acquireWaiters),
  workers = redis.call('ZCARD', key.workers),
  voidEpochs = redis.call('SCARD', key.voidLeaseEpochs),
})

--[[ Whether a pool has anything that periodic tasks look after, and what would be lost with it.
ARGV[1] JSON: {}
Reply: awake       boolean: servers or workers that live, calls that wait, rounds that are open, or work of a sweep
       inUse       list of string: what of this speaks against deleting the pool, for people
       servers, jobs   numbers, whatever their state
       lastMs      number: when a transition was last made
Errors: none. Facts: none.
Flags: no-writes ]]
--- @include "../includes/reply"
--- @include "../includes/keys"
local LOADING_MS = 3600000 -- engines that load for longer are probed again when the pool is used
local USES = {
  { key.usableServers, 'servers that take leases' }, { key.workers, 'live workers' }, { key.leases, 'leases' },
  { key.acquireWaiters, 'waiting acquires' }, { key.claimWaiters, 'waiting claims' }, { key.openJobs, 'open rounds' },
}
local uses = {}
for _, use in ipairs(USES) do
  if redis.call('EXISTS', use[1]) == 1 then table.insert(uses, use[2]) end
end
local awake = #uses > 0 or redis.call('EXISTS', key.watchedServers, key.voidLeaseEpochs, key.voidAttemptEpochs, key.sweeps,
  key.roundDeadlines, key.aborts, key.abortingGroups, key.abortingLeases, key.leavingGroups, key.droppedGroups,
  key.oldCheckpoints, key.movingRequests, key.movingLeases, key.weightSync, key.pausedEngines, key.nextEligible,
  key.freedPayloads, key.awaitingPayloads) > 0
  or redis.call('XLEN', key.facts) > 0
  or redis.call('ZCOUNT', key.pendingServers, redis.call('TIME')[1] * 1000 - LOADING_MS, '+inf') > 0
return cjson.encode({
  awake = awake, servers = redis.call('ZCARD', key.servers), jobs = redis.call('SCARD', key.jobs),
  lastMs = tonumber(redis.call('HGET', key.meta, 'clockMs') or 0),
}):sub(1, -2) .. ',"inUse":' .. encode_list(uses) .. '}'

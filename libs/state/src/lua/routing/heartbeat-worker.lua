--[[ Keeps a worker epoch, and with it all its leases and attempts, and tells what the books hold for it.
ARGV[1] JSON: {workerId, workerEpoch}
Reply: serverTimeMs, ttlMs, leaseCount, attemptCount   numbers
       leaseDigest   string: sum of the sequences of its leases, not yet reduced modulo 2^40
       generation    string: another one than before tells that Redis may have lost what it had granted
       syncAsked     true from routing/reconcile-server until a sync of leases begins; absent otherwise
Errors: WORKER_NOT_FOUND, FENCED (the epoch is void): register anew. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "../includes/generation"
--- @include "includes/workers"
local args = cjson.decode(ARGV[1])
if not worker_is_current(args.workerId, args.workerEpoch) then
  return fail(void_worker(args.workerId))
end
local now = now_ms()
local known = redis.call('HMGET', key.worker(args.workerId), 'ttlMs', 'leaseDigest', 'syncAsked')
keep_worker(args.workerId, tonumber(known[1]), now)
return cjson.encode({
  serverTimeMs = now,
  generation = (generation()),
  ttlMs = tonumber(known[1]),
  leaseCount = redis.call('SCARD', key.workerLeases(args.workerId, args.workerEpoch)),
  leaseDigest = known[2],
  attemptCount = redis.call('SCARD', key.workerAttempts(args.workerId, args.workerEpoch)),
  syncAsked = known[3] and true or nil,
})

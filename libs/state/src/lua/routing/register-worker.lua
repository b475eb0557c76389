--[[ Gives a worker a new epoch and voids the one before, with all its leases and attempts.
ARGV[1] JSON:
  workerId, registrationId   string; the same registrationId of a live epoch gets the same answer
  newEpoch                   string: the epoch that begins unless the call is a repeat
  ttlMs                      number
Reply: workerEpoch           string
       ttlMs, serverTimeMs   numbers
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/workers"
local args = cjson.decode(ARGV[1])
local now = now_ms()
local known = redis.call('HMGET', key.worker(args.workerId), 'liveEpoch', 'registrationId')
local epoch = known[1]
if not epoch or known[2] ~= args.registrationId then
  if epoch then void_worker_epoch(args.workerId, epoch) end
  epoch = args.newEpoch
end
redis.call('HSET', key.worker(args.workerId), 'liveEpoch', epoch, 'registrationId', args.registrationId,
  'ttlMs', args.ttlMs)
redis.call('HSETNX', key.worker(args.workerId), 'leaseDigest', 0)
redis.call('HSETNX', key.worker(args.workerId), 'registeredAtMs', string.format('%.0f', now))
keep_worker(args.workerId, args.ttlMs, now)
return '{"workerEpoch":"' .. epoch .. '","ttlMs":' .. args.ttlMs .. ',"serverTimeMs":' .. string.format('%.0f', now) .. '}'

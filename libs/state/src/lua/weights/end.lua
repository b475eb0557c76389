--[[ Ends a change of weights. Committed, servers that do not report the new version are quarantined until they do; rolled
back, those that do not report what all had before are. The pool goes on, unless it is paused by hand.
ARGV[1] JSON:
  syncId
  outcome         'committed' | 'rolled-back'; a repeat gets the same answer
  reason          string
  trainerEpoch    string or absent: whoever began it; for a change that was begun for a job
  overdueOnly     boolean: do nothing before the deadline
  stamp           of the trainer, or absent
Reply: WeightSync of the protocol, with a stamp; state 'begun' when `overdueOnly` had nothing to do
Errors: GENERATION_CHANGED, WEIGHT_SYNC_NOT_FOUND, JOB_NOT_FOUND, FENCED, WEIGHT_SYNC_ENDED (otherwise), WEIGHTS_NOT_QUIESCED (a commit while
  requests run that were to be stopped or waited for). Facts: weights.committed, weights.rolled-back.
Flags: allow-oom ]]
--- @include "includes/weight-sync"
--- @include "../includes/generation"
--- @include "../includes/trainer"
--- @include "../includes/facts"
local args = cjson.decode(ARGV[1])
local epoch = optional(args.trainerEpoch)
local changed = stamp_error(optional(args.stamp))
if changed then return changed end

local ended = redis.call('GET', key.endedSync(args.syncId))
if ended then
  local known = cjson.decode(ended)
  local refused = known.job and epoch and trainer_error(known.job, epoch)
  if refused then return refused end
  if known.state == args.outcome then return stamped(ended) end
  return fail('WEIGHT_SYNC_ENDED', 'The change of weights is ' .. known.state .. ': ' .. known.reason, 'syncId')
end
local sync = load_sync()
if not sync or sync.syncId ~= args.syncId then
  return fail('WEIGHT_SYNC_NOT_FOUND', 'There is no change of weights ' .. args.syncId, 'syncId')
end
local now = now_ms()
if args.overdueOnly then
  if now < sync.deadlineAtMs then return stamped(sync_json(sync, 'begun')) end
elseif sync.job then
  local refused = trainer_error(sync.job, epoch or sync.trainerEpoch)
  if refused then return refused end
end
local committed = args.outcome == 'committed'
local running = redis.call('HLEN', key.leases)
if committed and sync.mode ~= 'keep' and running > 0 then
  return fail('WEIGHTS_NOT_QUIESCED', plain(running) .. ' requests still run under the old weights', nil, 100)
end

local gate = committed and plain(sync.version) or redis.call('HGET', key.weightSync, 'gateBefore')
if gate and gate ~= '' and redis.call('HGET', key.settings, 'requiredWeightVersion') ~= gate then
  redis.call('HSET', key.settings, 'requiredWeightVersion', gate)
  -- The load-balancer puts every server where changed settings say.
  redis.call('HINCRBY', key.settings, 'version', 1)
end
if committed then redis.call('HSET', key.weights, 'version', plain(sync.version)) end
if sync.mode == 'keep' then redis.call('HSET', key.weights, 'keptUntilMs', plain(now)) end
redis.call('HDEL', key.settings, 'syncing')
redis.call('DEL', key.weightSync)
local answer = sync_json(sync, args.outcome, now, args.reason)
redis.call('SET', key.endedSync(args.syncId), answer, 'PX', ENDED_KEPT_MS)
fact('weights.' .. args.outcome, { syncId = sync.syncId, version = sync.version, reason = args.reason })
return stamped(answer)

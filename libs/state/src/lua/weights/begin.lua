--[[ Begins a change of the weights of a pool: one flag. From here on nothing is granted or claimed until it ends.
ARGV[1] JSON:
  syncId          string; a repeat gets the status of the change, under way or ended
  version         number: of the new weights
  mode            'abort' | 'wait' | 'keep': what becomes of running requests
  deadlineMs      number: rolled back when it is not committed by then
  job, trainerEpoch   strings, or absent: then only this trainer, or one that took over, may end it
  stamp           of the trainer, or absent
Reply: WeightSync of the protocol, with a stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, VALIDATION_FAILED (the syncId meant something else), WEIGHT_SYNC_CONFLICT,
  WEIGHT_VERSION_STALE. Facts: weights.begun.
Flags: allow-oom ]]
--- @include "includes/weight-sync"
--- @include "../includes/generation"
--- @include "../includes/trainer"
--- @include "../includes/facts"
local args = cjson.decode(ARGV[1])
local job = optional(args.job)
local refused = stamp_error(optional(args.stamp)) or (job and trainer_error(job, args.trainerEpoch))
if refused then return refused end

local function meant_this(sync)
  return sync.version == args.version and sync.mode == args.mode
end
local reused = fail('VALIDATION_FAILED', 'The syncId was used for another change of weights', 'syncId')

local ended = redis.call('GET', key.endedSync(args.syncId))
if ended then return meant_this(cjson.decode(ended)) and stamped(ended) or reused end
local sync = load_sync()
if sync and sync.syncId == args.syncId then return meant_this(sync) and stamped(sync_json(sync, 'begun')) or reused end
if sync then
  return fail('WEIGHT_SYNC_CONFLICT', 'The weights change to version ' .. plain(sync.version) .. ' just now: ' .. sync.syncId,
    'syncId', 500)
end
local from = pool_version()
if args.version < from then
  return fail('WEIGHT_VERSION_STALE', 'The pool is at version ' .. plain(from), 'version')
end

local now = now_ms()
local deadline = now + args.deadlineMs
redis.call('HSET', key.weightSync, 'syncId', args.syncId, 'version', plain(args.version), 'mode', args.mode, 'fromVersion',
  plain(from), 'startedAtMs', plain(now), 'deadlineAtMs', plain(deadline))
if job then redis.call('HSET', key.weightSync, 'job', job, 'trainerEpoch', args.trainerEpoch) end
-- The gate of a rollback: the one there is, or the version that all servers have; servers of several versions go on so.
local oldest = redis.call('ZRANGE', key.serverVersions, 0, 0, 'WITHSCORES')[2]
local is_uniform = oldest ~= nil and tonumber(oldest) == from
local gate = redis.call('HGET', key.settings, 'requiredWeightVersion') or (is_uniform and plain(from)) or ''
redis.call('HSET', key.weightSync, 'gateBefore', gate)
redis.call('HSET', key.settings, 'syncing', plain(args.version))
if args.mode == 'keep' then
  redis.call('HSET', key.weights, 'keptVersion', plain(args.version))
  redis.call('HDEL', key.weights, 'keptUntilMs')
end
fact('weights.begun', { syncId = args.syncId, version = args.version, mode = args.mode, fromVersion = from })
return stamped(sync_json(load_sync(), 'begun'))

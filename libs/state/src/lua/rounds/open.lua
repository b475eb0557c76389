--[[ Opens the round of the next step: in state `opening` while groups of the long-tail queue are taken, else `open`.
ARGV[1] JSON:
  job, roundId, planId, kind    string
  step, neededGroups, takeGroups, newGroups, orphanAfterMs   number
  weightVersion                 number or absent: that of the pool; another one is refused
  policy                        JSON of the policy as a string
  deadlineMs                    number or absent
  abortScope                    'sample' | 'group' or absent: what an abort of a request drops that does not say it; 'group'
  digest                        string: of all of the above; the same round opened with another one is a conflict
  rules                         {onCut, reservesTaken, sampleOverProvision, concurrency, maxFailures, maxReturns, acceptsFewer,
                                maxCuts, maxAgeSteps, maxVersionSpan, dispatchOrder}: what follows from the policy
  keepTokens                    number of tokens that groups taken may bring in all, or absent: any
  places                        list of {domain, places} when domains have quotas, or absent
  choice, control               JSON as strings or absent: what an adaptive policy chose, and what it keeps for the next round
  stamp                         of the trainer, or absent
  trainerEpoch                  string or absent: then this trainer is a new one, and the one before is fenced
  newEpoch                      string: the epoch of a trainer that is new
Reply: roundId, trainerEpoch, state, takenGroups, stamp
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_CLOSED, ROUND_CANCELLED, PLAN_STALE, ROUND_SETTLING, RESTORE_UNFINISHED, JOB_IN_USE,
  WEIGHT_VERSION_MISMATCH. Facts: round.opened. ]]
--- @include "../includes/generation"
--- @include "../includes/rounds"
--- @include "../includes/pool-version"
local args = cjson.decode(ARGV[1])
local refused = stamp_error(optional(args.stamp))
if refused then return refused end
local field = redis.call('HMGET', key.job(args.job), 'trainerEpoch', 'stepsTrained', 'openRoundId', 'settlingGroups', 'restoring', 'deleting')
local current, steps, open_round, settling =
  field[1] or nil, tonumber(field[2] or 0), field[3], tonumber(field[4] or 0)
local given = optional(args.trainerEpoch)

if field[6] then return fail('JOB_IN_USE', 'The job is being deleted', 'job', 200) end

local function answer(state, taken, epoch)
  return stamped(cjson.encode({ roundId = args.roundId, trainerEpoch = epoch, state = state, takenGroups = taken }))
end
if given and not current then return fail('JOB_NOT_FOUND', 'There is no job ' .. args.job, 'job') end

local hash = key.round(args.job, args.roundId)
local known = redis.call('HMGET', hash, 'state', 'digest', 'takenGroups', 'trainerEpoch')
-- Who opened this very round and lost the answer is the trainer it was opened by.
local speaker = given or (known[2] == args.digest and known[4]) or current
if speaker ~= current then return fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch') end
if known[1] then
  if known[1] == 'closed' then return fail('ROUND_CLOSED', 'The round is closed', 'roundId') end
  if known[1] == 'cancelled' then return fail('ROUND_CANCELLED', 'The round was cancelled; open one with another roundId', 'roundId') end
  if known[2] ~= args.digest then return fail('ROUND_CONFLICT', 'The round was opened with other parameters', 'roundId') end
  return answer(known[1], tonumber(known[3]), current)
end
if field[5] then return fail('RESTORE_UNFINISHED', 'The job is being restored; repeat job.restore', 'job', 50) end
if open_round then return fail('ROUND_CONFLICT', 'Round ' .. open_round .. ' of the job is not closed', 'roundId') end
if args.step ~= steps + 1 then
  return fail('PLAN_STALE', 'The job has trained ' .. integer(steps) .. ' steps', 'step')
end
local weight_version = optional(args.weightVersion) or pool_version()
if not is_pool_version(weight_version) then
  return fail('WEIGHT_VERSION_MISMATCH', 'The pool is at weight version ' .. integer(pool_version())
    .. ', and no segment of this round would have version ' .. integer(weight_version), 'weightVersion', nil,
    { weightVersion = weight_version, poolWeightVersion = pool_version() })
end
local rules = args.rules
local has_pins = rules.maxCuts > 0 or rules.maxAgeSteps > 0 or rules.maxVersionSpan >= 0
if has_pins and settling > 0 then
  return fail('ROUND_SETTLING', 'A bound may pin groups whose cut is still being confirmed', nil, 50)
end
local queued = redis.call('ZCARD', key.longtail(args.job))
if queued < args.takeGroups then
  if queued + settling >= args.takeGroups then
    return fail('ROUND_SETTLING', 'Cut requests of an earlier round are still being confirmed', nil, 50)
  end
  return fail('PLAN_STALE', 'The long-tail queue holds ' .. integer(queued) .. ' groups', 'takeGroups')
end

local now = now_ms()
local epoch = given or args.newEpoch
local state = args.takeGroups > 0 and 'opening' or 'open'
redis.call('SADD', key.jobs, args.job)
redis.call('SADD', key.openJobs, args.job)
redis.call('HSET', key.job(args.job), 'trainerEpoch', epoch, 'trainerSeenAtMs', integer(now), 'openRoundId', args.roundId,
  'lastRoundId', args.roundId, 'orphanAfterMs', integer(args.orphanAfterMs))
redis.call('HSET', hash, 'state', state, 'planId', args.planId, 'digest', args.digest, 'kind', args.kind,
  'step', args.step, 'neededGroups', args.neededGroups, 'newGroups', args.newGroups, 'takeGroups', args.takeGroups,
  'takenGroups', 0, 'submittedGroups', 0, 'acceptedGroups', 0, 'acceptedRequests', 0, 'failedGroups', 0, 'liveGroups', 0,
  'policy', args.policy, 'shortfall', rules.acceptsFewer and 'accept-fewer' or 'replace', 'maxFailures', rules.maxFailures,
  'maxReturns', rules.maxReturns,
  'onCut', rules.onCut, 'reservesTaken', rules.reservesTaken and 1 or 0, 'concurrency', rules.concurrency,
  'sampleOverProvision', rules.sampleOverProvision, 'maxCuts', rules.maxCuts, 'maxAgeSteps', rules.maxAgeSteps,
  'maxVersionSpan', rules.maxVersionSpan, 'dispatchOrder', rules.dispatchOrder, 'reservedGroups', 0, 'inFlight', 0,
  'weightVersion', weight_version, 'trainerEpoch', epoch, 'settled', 0, 'openedAtMs', integer(now))
if optional(args.keepTokens) then redis.call('HSET', hash, 'keepTokens', integer(args.keepTokens)) end
if optional(args.abortScope) then redis.call('HSET', hash, 'abortScope', args.abortScope) end
if optional(args.choice) then redis.call('HSET', hash, 'choice', args.choice) end
if optional(args.control) then redis.call('HSET', key.job(args.job), 'tailControl', args.control) end
for _, one in ipairs(optional(args.places) or {}) do
  redis.call('HSET', hash, 'hasQuotas', 1)
  redis.call('HSET', key.roundPlaces(args.job, args.roundId), one.domain, one.places)
end
redis.call('ZADD', key.rounds(args.job), args.step, args.roundId)
local name = args.job .. '/' .. args.roundId
if state == 'opening' then redis.call('SADD', key.sweeps, name) end
if optional(args.deadlineMs) then redis.call('ZADD', key.roundDeadlines, integer(now + args.deadlineMs), name) end
fact('round.opened', { job = args.job, roundId = args.roundId, step = args.step, kind = args.kind,
  neededGroups = args.neededGroups, newGroups = args.newGroups, takeGroups = args.takeGroups, policy = cjson.decode(args.policy).name })
return answer(state, 0, epoch)

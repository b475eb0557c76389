-- RoundStatus of the protocol, as JSON.
local RoundStatus = {}

local COPIED = { 'roundId', 'kind', 'state', 'settled', 'step', 'weightVersion', 'neededGroups', 'newGroups',
  'takenGroups', 'acceptedGroups', 'excludedGroups', 'replacedGroups', 'failedGroups', 'droppedGroups', 'requestsDone',
  'requestsCut', 'groupsRequeued', 'openedAtMs', 'completedReason', 'completedAtMs', 'traceparent' }
local WASTE_REASONS = { 'cut', 'unaccepted', 'surplus', 'failed', 'aborted', 'version-span', 'off-policy', 'not-stored',
  'missing', 'timeout', 'equal-rewards' }
local RETURN_REASONS = { 'engine-error', 'engine-rejected', 'engine-abort', 'no-server', 'payload', 'aborted',
  'shutdown', 'unclaimed', 'worker-lost', 'payload-full', 'timeout', 'internal' }

-- Names and their counts without zeros, as JSON; and the sum.
local function counts_json(names, read)
  local counts, sum = {}, 0
  for _, name in ipairs(names) do
    local count = read(name)
    sum = sum + count
    if count > 0 then counts[name] = count end
  end
  return cjson.encode(counts), sum
end

local GRACE_MS = 3000 -- time in which workers start to claim requests of a new round

local WEIGHTS_UNKNOWN = 'A change of weights ended at its deadline, or a load failed, so the weights of the servers '
  .. 'are unknown: load them again, or report the version of each server (server.update)'

local function describe_other_weights(tx, server)
  return string.format('The pool has weights of version %s, and its servers have others, for example %s version %s: '
    .. 'load version %s and report it (server.update), or make the version of the servers the version of the pool '
    .. '(weights.begin, server.update, weights.commit)', tx.settings.requiredWeightVersion, server.id,
    Format.integer(server.weightVersion), tx.settings.requiredWeightVersion)
end

local TRAINER_SILENT = 'The trainer has not called for longer than orphanAfterMs, so no request of the job is claimed: '
  .. 'start the trainer again, or cancel the round'

-- BlockedReason of the protocol as JSON, for a round whose trainer is silent, or that no server or no worker serves; or
-- nil.
local function find_unserved(tx, job, status)
  local known, has_pending = Job.get(tx, job), redis.call('EXISTS', tx.key:pending(job)) == 1
  local lacks_groups = status.shortfallGroups > 0 or status.roundGroups < status.takenGroups + status.newGroups
  if (has_pending or lacks_groups) and Job.is_orphaned(tx, known) then
    return Reply.object({ code = 'TRAINER_SILENT', message = TRAINER_SILENT, sinceMs = known.trainerSeenAtMs })
  end
  if Settings.pause_reason(tx) then return nil end
  local obstacle, server = Servers.find_weight_obstacle(tx)
  if obstacle then
    return Reply.object({ code = 'NO_SERVER_AVAILABLE', reason = obstacle,
      message = obstacle == 'weights-unknown' and WEIGHTS_UNKNOWN or describe_other_weights(tx, server) })
  end
  if tx.now < status.openedAtMs + GRACE_MS or not has_pending then return nil end
  local kind = known.workerKind
  if ClaimTurns.held_by_workers(tx, job) > 0 or Claimers.has(tx, kind) then return nil end
  local named = kind and 'of the kind ' .. kind or 'without a kind'
  return Reply.object({ code = 'NO_WORKER_AVAILABLE', reason = 'no-worker-of-kind', workerKind = kind,
    workerKinds = Claimers.kinds(tx), message = 'No worker ' .. named .. ' claims requests of the job: start one, or '
      .. 'open the next round with the workerKind of workers that are there' })
end

-- The status of a round, JSON; nil for a round that is not there.
function RoundStatus.json(tx, job, round_id)
  local round = Round.load(tx, job, round_id)
  if not round then return nil end
  Round.read_rest(tx, round)
  local is_open, status = Round.takes_results(round), {}
  for _, name in ipairs(COPIED) do status[name] = round[name] end
  status.trainerEpoch = Job.read_epoch(tx, job) or false
  status.roundGroups = status.takenGroups + round.submittedGroups
  status.shortfallGroups = is_open and Round.count_shortfall(round) or 0
  status.pinnedGroups, status.requestsInFlight = round.reservedGroups, round.concurrency > 0 and round.inFlight or nil
  status.heldGroups = is_open and redis.call('ZCARD', tx.key:roundHeld(job, round_id)) or 0
  status.unrewardedGroups = is_open and round.equalRewards == 'replace' and Rewards.missing(tx, round) or nil
  status.workerKind = Job.get(tx, job).workerKind
  local json = { policy = round.policy, choice = round.choice, lastFailures = round.lastFailures }
  local blocked = is_open and redis.call('HGET', tx.key.blockedJobs, job)
  if blocked then
    local why = cjson.decode(blocked)
    json.blockedReason = cjson.encode({ code = why.code, message = why.message, sinceMs = why.sinceMs })
  elseif is_open then
    json.blockedReason = find_unserved(tx, job, status)
  end
  json.wastedByReason, status.wastedTokens = counts_json(WASTE_REASONS, function(reason)
    return tonumber(redis.call('HGET', tx.key:roundLedger(job, round_id), 'waste.' .. reason) or 0)
  end)
  json.returnedAttempts = counts_json(RETURN_REASONS, function(reason)
    return Round.count_returned(tx, round, reason)
  end)
  return Reply.object(status, json)
end

return RoundStatus

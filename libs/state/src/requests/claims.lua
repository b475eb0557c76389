-- Gives pending requests to a worker, for a new claim or a parked claim.
local Claims = {}

local JOBS_LOOKED_AT = 16
local REQUESTS_LOOKED_AT = 256
local CLAIMS_A_SCRIPT = 64 -- an answer may have fewer claims than the call requested

-- Reason why no lease is granted and no request claimed, or nil (UNSERVED_REASONS of libs/contracts).
function Claims.pause_reason(tx)
  local field = redis.call('HMGET', tx.key.settings, 'paused', 'syncing')
  return field[2] and 'weights-changing' or field[1] and 'paused' or nil
end

-- Weight version of a claim: version of the round, or the version of the pool if it is newer.
local function claim_version(tx, round)
  tx.pool_weight_version = tx.pool_weight_version or tonumber(redis.call('HGET', tx.key.weights, 'version') or nil) or 0
  return math.max(round.weightVersion, tx.pool_weight_version)
end

-- Id of the next attempt, `<number>-<new_attempt>`; the number is for people. A Redis that was set back may give a
-- number again. The rest of the id differs, so a report of the first attempt never counts for the second.
local function next_attempt(attempt, new_attempt)
  return Format.integer(string.match(attempt, '^%d+') + 1) .. '-' .. new_attempt
end

-- `bound_id`, `bound_epoch`: the server to which a move has bound the request, or nil.
local function claim_json(tx, request, group, round, bound_id, bound_epoch)
  local setbacks, avoided = Setbacks.of_claim(request)
  local plain = cjson.encode({
    requestId = request.id, attempt = request.attempt, job = request.job, roundId = round.roundId,
    groupId = request.groupId, sampleIndex = request.index, promptRef = group.promptRef, maxTokens = group.maxTokens,
    timeoutMs = group.timeoutMs, generatedMs = group.timeoutMs and GenerationTime.sum_time(tx, request),
    weightVersion = claim_version(tx, round), boundServerId = bound_id, boundServerEpoch = bound_epoch,
    traceparent = round.traceparent, priority = round.priority, setbacks = setbacks, avoidServers = avoided,
  })
  return InlineSegments.append(plain, request.segments, ',"sampling":' .. group.sampling)
end

-- Whether one more claim fits in the answer, which may not be larger than a message. `claimed_bytes`: bytes of the
-- claims of this script so far.
local CLAIM_BYTES = 1500 -- ids and references
function Tx.fields.claimed_bytes() return 0 end
function Tx.fields.answer_is_full() return false end
local function fits_answer(tx, request, group)
  if tx.claimed_bytes == 0 then return true end
  return tx.claimed_bytes + CLAIM_BYTES + #group.sampling + math.min(#request.segments,
    InlineSegments.MAX_INLINE_BYTES) <= InlineSegments.REPLY_BYTES
end

-- True for a round with a fixed concurrency while workers have that many of its requests. The count of the round is too
-- high when Redis has lost a request or group that a worker had, so the count of the whole job must be as high.
local function is_gate_closed(tx, round)
  if round.concurrency == 0 or round.inFlight < round.concurrency or not Round.takes_results(round) then
    return false
  end
  local held = redis.call('HMGET', tx.key:counts(round.job), 'claimed', 'running', 'cutting')
  return tonumber(held[1] or 0) + tonumber(held[2] or 0) + tonumber(held[3] or 0) >= round.concurrency
end

-- Gives at most `most` pending requests of one job. Returns how many requests were checked, and true at a closed gate.
local function take_of_job(tx, job, most, claims, worker, new_attempt)
  local looked, groups, rounds, by_id, last = 0, {}, {}, {}, #claims + most
  while #claims < last and looked < REQUESTS_LOOKED_AT do
    local ids = redis.call('ZRANGE', tx.key:pending(job), 0, last - #claims - 1)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      looked = looked + 1
      local request = Request.load(tx, id)
      local group, round
      if request then
        local group_name = job .. '/' .. request.groupId
        if not groups[group_name] then groups[group_name], rounds[group_name] = Recovery.load_owners(tx, request) end
        group, round = groups[group_name], rounds[group_name]
        -- All groups of a round share one table, so that they see the same count of requests in flight.
        if round then
          by_id[round.roundId] = by_id[round.roundId] or round
          round, rounds[group_name] = by_id[round.roundId], by_id[round.roundId]
        end
      else
        Recovery.lose_missing(tx, id)
      end
      if group and Aborts.apply(tx, round, group, {}) then looked = looked + group.launched end
      if not group or request.state ~= 'pending' or group.state == 'aborting' or group.state == 'dropped' then
        -- The request, or an earlier sibling in this page, was dropped just now or was lost.
      elseif is_gate_closed(tx, round) then
        return looked, true
      elseif Round.takes_results(round) and not fits_answer(tx, request, group) then
        tx.answer_is_full = true
        return looked, false
      elseif Round.takes_results(round) then
        if round.concurrency > 0 then round.inFlight = round.inFlight + 1 end
        -- Requests.move ends the binding of a moved request to its server, so the server is read before.
        local bound_id, bound_epoch = request.boundServerId, request.boundServerEpoch
        if request.started then Request.set(tx, request, { started = false }) end
        Requests.move(tx, request, group, 'claimed', { 'attempt', next_attempt(request.attempt, new_attempt),
          'workerId', worker.id, 'workerEpoch', worker.epoch, 'claimedAtMs', tx.now_text })
        table.insert(claims, claim_json(tx, request, group, round, bound_id, bound_epoch))
        tx.claimed_bytes = tx.claimed_bytes + #claims[#claims]
      else
        Longtail.cut_request(tx, round, group, request, nil, 0)
      end
    end
  end
  return looked, false
end

-- Returns a list of JSON claims, and true when a script reached its bounds without a claim. ClaimTurns decides the
-- order of jobs; with `only`, a job or nil, no other job is asked. Requests of completed rounds are cut on the way. No
-- claims while the pool is paused. `worker`: {id, epoch, kind}; kind is nil for a built-in worker.
function Claims.take(tx, worker, new_attempt, max, only)
  local claims, looked, jobs = {}, 0, 0
  max = math.min(max, CLAIMS_A_SCRIPT)
  if Claims.pause_reason(tx) then return claims, false end
  while #claims < max and not tx.answer_is_full and looked < REQUESTS_LOOKED_AT and jobs < JOBS_LOOKED_AT do
    local job, service = ClaimTurns.next(tx, worker.kind, only)
    if not job then break end
    jobs = jobs + 1
    local is_blocked = redis.call('HEXISTS', tx.key.blockedJobs, job) == 1
    local known = Job.get(tx, job)
    local is_orphaned = Job.is_orphaned(tx, known)
    local most = (is_blocked or is_orphaned) and 0 or math.min(max - #claims, ClaimTurns.room_of(tx, job))
    if known.workerKind ~= worker.kind then
      -- A replica of an earlier version has put the job into the line of built-in workers.
      redis.call('ZREM', ClaimTurns.line(tx, worker.kind), job)
      ClaimTurns.offer(tx, job)
    elseif most == 0 then
      ClaimTurns.withhold(tx, job)
    else
      local before = #claims
      local seen, is_gated = take_of_job(tx, job, most, claims, worker, new_attempt)
      looked = looked + seen
      ClaimTurns.charge(tx, job, service, #claims - before)
      if is_gated then ClaimTurns.withhold(tx, job) end
    end
  end
  return claims, #claims == 0 and (looked >= REQUESTS_LOOKED_AT or jobs >= JOBS_LOOKED_AT)
end

-- A parked claim, or nil when it is gone and only its place in the queue is left.
function Claims.load_waiter(tx, claim_id)
  local packed = redis.call('HGET', tx.key.claimWaiters, claim_id)
  return packed and cjson.decode(packed) or nil
end

-- Name of the lane in which a claim waits: the job, a line break and the kind of worker, each only if there is one. A
-- job and a kind have no line breaks. Claims of built-in workers for any job wait in ANY_LANE.
Claims.ANY_LANE = ''

function Claims.lane(job, kind) return (job or '') .. (kind and '\n' .. kind or '') end

-- Whether claims in the lane may get requests.
function Claims.lane_is_served(tx, lane)
  local job, kind = string.match(lane, '^([^\n]*)\n?(.*)$')
  local line = ClaimTurns.line(tx, kind ~= '' and kind or nil)
  if job == '' then return redis.call('EXISTS', line) == 1 end
  return redis.call('ZSCORE', line, job) and true
end

function Claims.queue(tx, lane) return lane ~= Claims.ANY_LANE and tx.key:claimLane(lane) or tx.key.claimQueue end

function Claims.forget_waiter(tx, claim_id, lane)
  redis.call('HDEL', tx.key.claimWaiters, claim_id)
  redis.call('ZREM', tx.key.claimDeadlines, claim_id)
  redis.call('ZREM', Claims.queue(tx, lane), claim_id)
  if lane ~= Claims.ANY_LANE and redis.call('EXISTS', Claims.queue(tx, lane)) == 0 then
    redis.call('SREM', tx.key.claimLanes, lane)
  end
end

-- The answer of a claim that got requests; it is kept for a repeat.
function Claims.keep_answer(tx, claim_id, claims, kept_ms)
  local answer = '{"claims":[' .. table.concat(claims, ',') .. ']}'
  redis.call('SET', tx.key:claim(claim_id), answer, 'PX', Format.integer(kept_ms))
  return answer
end

return Claims

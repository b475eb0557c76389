--- @include "aborts"
--- @include "waiting-clock"
-- Gives pending requests to a worker; the same for a claim that asks and for one that waited.
local JOBS_LOOKED_AT = 16
local REQUESTS_LOOKED_AT = 256

local function is_orphaned(job, now)
  local field = redis.call('HMGET', key.job(job), 'trainerSeenAtMs', 'orphanAfterMs')
  return now - tonumber(field[1] or 0) > tonumber(field[2] or 0)
end

-- Of the round, or newer when the weights of the pool have changed since it was opened.
local pool_weight_version
local function claim_version(round)
  pool_weight_version = pool_weight_version or tonumber(redis.call('HGET', key.weights, 'version') or nil) or 0
  return math.max(round.weightVersion, pool_weight_version)
end

-- Attempts from before a restore of the job are below it, also those of a request that was restored.
local function attempt_floor(job) return tonumber(redis.call('HGET', key.job(job), 'attemptFloor') or 0) end

local function claim_json(request, group, round)
  local plain = cjson.encode({
    requestId = request.id, attempt = request.attempt, job = request.job, roundId = round.roundId,
    groupId = request.groupId, sampleIndex = request.index, promptRef = group.promptRef, maxTokens = group.maxTokens,
    weightVersion = claim_version(round),
  })
  return string.sub(plain, 1, -2) .. ',"sampling":' .. group.sampling .. ',"segments":' .. request.segments .. '}'
end

-- Returns a list of JSON claims, and true when there was more to look at than one script may.
-- Jobs come in turn. What belongs to a completed round is settled on the way. Nothing while the pool stands still.
local function take_claims(worker_id, worker_epoch, max, now)
  local claims, looked, groups, rounds = {}, 0, {}, {}
  if pool_stands_still() then return claims, false end
  for _, job in ipairs(redis.call('ZRANGE', key.claimableJobs, 0, JOBS_LOOKED_AT - 1)) do
    if #claims >= max or looked >= REQUESTS_LOOKED_AT then break end
    while not is_orphaned(job, now) and #claims < max and looked < REQUESTS_LOOKED_AT do
      local ids = redis.call('ZRANGE', key.pending(job), 0, max - #claims - 1)
      if #ids == 0 then break end
      for _, id in ipairs(ids) do
        looked = looked + 1
        local request = load_request(id)
        local group_name = job .. '/' .. request.groupId
        local group = groups[group_name] or load_group(job, request.groupId)
        groups[group_name] = group
        local round_name = job .. '/' .. group.roundId
        local round = rounds[round_name] or load_round(job, group.roundId)
        rounds[round_name] = round
        if honour_abort(round, group, {}) then looked = looked + group.samples end
        if request.state ~= 'pending' or group.state == 'aborting' or group.state == 'dropped' then
          -- Dropped just now, it or a sibling that came before it in this page.
        elseif takes_results(round) then
          request.attempt = math.max(request.attempt, attempt_floor(job)) + 1
          request.workerId, request.workerEpoch, request.started = worker_id, worker_epoch, false
          redis.call('HSET', key.request(id), 'attempt', request.attempt, 'workerId', worker_id, 'workerEpoch',
            integer(worker_epoch), 'claimedAtMs', integer(now), 'started', 0)
          move_request(request, group, 'claimed')
          table.insert(claims, claim_json(request, group, round))
        else
          cut_request(round, group, request, nil, 0)
        end
      end
    end
    if redis.call('EXISTS', key.pending(job)) == 1 then
      redis.call('ZADD', key.claimableJobs, redis.call('HINCRBY', key.meta, 'pendingSequence', 1), job)
    else
      redis.call('ZREM', key.claimableJobs, job)
    end
  end
  return claims, looked >= REQUESTS_LOOKED_AT and #claims == 0
end

local function forget_waiter(claim_id)
  redis.call('HDEL', key.claimWaiters, claim_id)
  redis.call('ZREM', key.claimQueue, claim_id)
  redis.call('ZREM', key.claimDeadlines, claim_id)
end

-- The answer of a claim that got something, kept for a repeat.
local function keep_answer(claim_id, claims, kept_ms)
  local answer = '{"claims":[' .. table.concat(claims, ',') .. ']}'
  redis.call('SET', key.claim(claim_id), answer, 'PX', integer(kept_ms))
  return answer
end

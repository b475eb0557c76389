--- @include "clock"
--- @include "reply"
--- @include "facts"
--- @include "transition"
--- @include "segments"
-- How a round gets its groups and what becomes of the others.

-- A large abort is a number that every script compares: of the round, its job or the pool, all groups submitted up to
-- it are aborted. Returns the highest and the abortId, or -1.
local function abort_flag(job, round_id)
  local up_to, abort_id = -1, nil
  for _, owner in ipairs({ key.round(job, round_id), key.job(job), key.meta }) do
    local flag = redis.call('HMGET', owner, 'abortedUpTo', 'abortedBy')
    if flag[1] and tonumber(flag[1]) > up_to then up_to, abort_id = tonumber(flag[1]), flag[2] end
  end
  return up_to, abort_id
end

local function load_round(job, round_id)
  local field = redis.call('HMGET', key.round(job, round_id), 'state', 'neededGroups', 'acceptedGroups', 'liveGroups',
    'newGroups', 'submittedGroups', 'policyName', 'shortfall', 'maxFailures', 'weightVersion', 'step', 'settled',
    'cancelMode', 'cancelReason')
  if not field[1] then return nil end
  local aborted_up_to, aborted_by = abort_flag(job, round_id)
  return {
    job = job, roundId = round_id, state = field[1], needed = tonumber(field[2]), accepted = tonumber(field[3]),
    live = tonumber(field[4]), newGroups = tonumber(field[5]), submitted = tonumber(field[6]),
    -- A round that was cancelled throws nothing away: what it gives back goes on under the policy of a later round.
    policy = field[13] and 'resume' or field[7], cancelMode = field[13] or nil, cancelReason = field[14] or nil,
    shortfall = field[8], maxFailures = tonumber(field[9]), weightVersion = tonumber(field[10]),
    step = tonumber(field[11]), settled = field[12] == '1', abortedUpTo = aborted_up_to, abortedBy = aborted_by,
  }
end

local function load_group(job, group_id)
  local field = redis.call('HMGET', key.group(job, group_id), 'state', 'samples', 'finished', 'live', 'roundId', 'maxTokens',
    'promptRef', 'sampling', 'arrival')
  if not field[1] then return nil end
  return {
    job = job, groupId = group_id, state = field[1], samples = tonumber(field[2]), finished = tonumber(field[3]),
    live = tonumber(field[4]), roundId = field[5], maxTokens = tonumber(field[6]), promptRef = field[7],
    sampling = field[8], arrival = tonumber(field[9] or 0),
  }
end

local function takes_results(round) return round.state == 'open' or round.state == 'opening' end

-- Its requests go to the long-tail queue, whatever their holders say.
local function is_cut(round, group) return not round or not takes_results(round) or group.state == 'leaving' end

local function bump(round, field, by)
  return redis.call('HINCRBY', key.round(round.job, round.roundId), field, by)
end

local function sweep_name(round) return round.job .. '/' .. round.roundId end

-- Groups asked for as replacements: nothing that is live or still to be submitted can fill these places.
local function shortfall_of(round)
  local to_come = math.max(0, round.newGroups - round.submitted)
  return math.max(0, round.needed - round.accepted - round.live - to_come)
end

-- All its unaccepted groups are in the long-tail queue.
local function mark_settled(round)
  redis.call('HSET', key.round(round.job, round.roundId), 'settled', 1)
  round.settled = true
  -- A closed round stays in the sweep until it is folded.
  if round.state == 'completed' then redis.call('SREM', key.sweeps, sweep_name(round)) end
  fact('round.settled', { job = round.job, roundId = round.roundId })
end

-- One flag, however many groups the round has: every script checks it, and the sweep follows.
local function complete_round(round, reason)
  round.state = 'completed'
  redis.call('HSET', key.round(round.job, round.roundId), 'state', 'completed', 'completedReason', reason,
    'completedAtMs', integer(now_ms()))
  redis.call('ZREM', key.roundDeadlines, sweep_name(round))
  fact('round.completed', { job = round.job, roundId = round.roundId, step = round.step, reason = reason,
    acceptedGroups = round.accepted })
  if round.live > 0 then
    redis.call('SADD', key.sweeps, sweep_name(round))
    redis.call('HINCRBY', key.job(round.job), 'settlingGroups', round.live)
  else
    mark_settled(round)
  end
end

-- Completes an open round that has all it can get. Not before all its groups are there.
local function review_round(round)
  if round.state ~= 'open' then return end
  if round.accepted >= round.needed then return complete_round(round, 'accepted') end
  local to_come = math.max(0, round.newGroups - round.submitted)
  if round.shortfall == 'accept-fewer' and round.live == 0 and to_come == 0 then
    complete_round(round, 'accepted-fewer')
  end
end

local function accept_group(round, group)
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'accepted')
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group.groupId)
  redis.call('RPUSH', key.roundAccepted(round.job, round.roundId), group.groupId)
  group.state = 'accepted'
  round.accepted = bump(round, 'acceptedGroups', 1)
  round.live = bump(round, 'liveGroups', -1)
  bump(round, 'acceptedRequests', group.samples)
  fact('round.progressed', { job = round.job, roundId = round.roundId, groupId = group.groupId,
    acceptedGroups = round.accepted, neededGroups = round.needed })
  review_round(round)
end

-- A group of which a sample was handed in leaves its round at once; it is `leaving` as long as a worker has a sample.
local function leave_for_longtail(round, group)
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'leaving')
  group.state = 'leaving'
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group.groupId)
  redis.call('ZADD', key.leavingGroups, integer(now_ms()), group.job .. '/' .. group.groupId)
  redis.call('HINCRBY', key.job(group.job), 'settlingGroups', 1)
  bump(round, 'leavingGroups', 1)
  round.live = bump(round, 'liveGroups', -1)
end

local function forget_leaving(round, group)
  redis.call('ZREM', key.leavingGroups, group.job .. '/' .. group.groupId)
  bump(round, 'leavingGroups', -1)
end

-- A group of a completed round, or one that has left its round, with nothing live any more goes to the long-tail queue, finished samples and all;
-- `regenerate` keeps nothing. Its place in the queue is that of its first cut.
local function settle_group(round, group)
  if round.policy == 'regenerate' and group.finished > 0 then
    for index = 0, group.samples - 1 do
      local request = load_request(request_id(group.job, group.groupId, index))
      if request.state == 'finished' then
        waste_tokens(request, round, nil, 0)
        move_request(request, group, 'unfinished')
      end
    end
  end
  local group_key = key.group(group.job, group.groupId)
  local had_left = group.state == 'leaving'
  redis.call('HSET', group_key, 'state', 'unfinished')
  group.state = 'unfinished'
  if redis.call('HDEL', group_key, 'cutStarted') == 1 then redis.call('HINCRBY', group_key, 'cuts', 1) end
  local place = redis.call('HGET', group_key, 'longtailSequence')
  if not place then
    place = redis.call('HINCRBY', key.meta, 'longtailSequence', 1)
    redis.call('HSET', group_key, 'longtailSequence', place)
  end
  redis.call('ZADD', key.longtail(group.job), place, group.groupId)
  bump(round, 'groupsRequeued', 1)
  redis.call('HINCRBY', key.job(group.job), 'settlingGroups', -1)
  fact('longtail.requeued', { job = group.job, groupId = group.groupId, roundId = round.roundId,
    finishedSamples = group.finished, samples = group.samples })
  if had_left then return forget_leaving(round, group) end
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group.groupId)
  round.live = bump(round, 'liveGroups', -1)
  if round.live == 0 then mark_settled(round) end
end

-- Ends a live request of a completed round. Only what had been started counts as cut.
local function cut_request(round, group, request, segment, tokens)
  local _, made = made_by_attempt(request, segment, tokens)
  if HELD[request.state] and (request.started or made > 0) then
    bump(round, 'requestsCut', 1)
    redis.call('HSET', key.group(group.job, group.groupId), 'cutStarted', 1)
  end
  if round.policy == 'regenerate' then
    waste_tokens(request, round, segment, tokens)
  else
    keep_tokens(request, segment, tokens)
  end
  move_request(request, group, 'unfinished')
  if group.live == 0 then settle_group(round, group) end
end

-- The group can never be whole again: its other requests are dropped, and their holders told.
local function fail_group(round, group, aborts)
  for index = 0, group.samples - 1 do
    local request = load_request(request_id(group.job, group.groupId, index))
    if request.state ~= 'failed' then
      if HELD[request.state] then
        table.insert(aborts, { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
          workerEpoch = request.workerEpoch })
      end
      waste_tokens(request, round, nil, 0)
      move_request(request, group, 'dropped')
    end
  end
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'failed')
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group.groupId)
  redis.call('RPUSH', key.roundFailed(round.job, round.roundId), group.groupId)
  group.state = 'failed'
  bump(round, 'failedGroups', 1)
  round.live = bump(round, 'liveGroups', -1)
  redis.call('HINCRBY', key.job(group.job), 'failedGroups', 1)
  fact('group.failed', { job = group.job, groupId = group.groupId, roundId = round.roundId })
  review_round(round)
end

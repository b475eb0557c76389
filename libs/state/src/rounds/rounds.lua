-- How a round gets its groups. What becomes of the others: longtail/longtail.lua.
local Rounds = {}

function Tx.fields.abort_of_pool(tx)
  local field = redis.call('HMGET', tx.key.meta, 'abortedUpTo', 'abortedBy')
  return { abortedUpTo = tonumber(field[1] or -1), abortedBy = field[2] }
end

-- A large abort is a number that every transition compares: of the round, its job or the pool, all groups submitted up
-- to that number are aborted. Returns the highest and the abortId, or -1.
local function abort_flag(tx, job, up_to, abort_id)
  local of_job, of_pool = Jobs.read(tx, job), tx.abort_of_pool
  if of_job.abortedUpTo > up_to then up_to, abort_id = of_job.abortedUpTo, of_job.abortedBy end
  if of_pool.abortedUpTo > up_to then up_to, abort_id = of_pool.abortedUpTo, of_pool.abortedBy end
  return up_to, abort_id
end

function Rounds.load(tx, job, round_id)
  local field = redis.call('HMGET', tx.key:round(job, round_id), 'state', 'neededGroups', 'acceptedGroups',
    'liveGroups', 'newGroups', 'submittedGroups', 'onCut', 'shortfall', 'weightVersion', 'step', 'settled',
    'cancelMode', 'cancelReason', 'reservedGroups', 'concurrency', 'inFlight', 'hasQuotas', 'sampleOverProvision',
    'openedAtMs', 'abortedUpTo', 'abortedBy', 'ledgerFolded', 'longestTokens', 'traceparent', 'priority',
    'equalRewards')
  Ledger.note_round(tx, job, round_id, field[1], field[22])
  if not field[1] then return nil end
  local aborted_up_to, aborted_by = abort_flag(tx, job, tonumber(field[20] or -1), field[21] or nil)
  return {
    job = job, roundId = round_id, state = field[1], needed = tonumber(field[2]), accepted = tonumber(field[3]),
    live = tonumber(field[4]), newGroups = tonumber(field[5]), submitted = tonumber(field[6]),
    -- A cancelled round discards nothing: its groups continue under the policy of a later round.
    discards = field[7] == 'discard' and not field[12], cancelMode = field[12] or nil, cancelReason = field[13] or nil,
    shortfall = field[8], weightVersion = tonumber(field[9]), step = tonumber(field[10]), settled = field[11] == '1',
    abortedUpTo = aborted_up_to, abortedBy = aborted_by, reserved = tonumber(field[14] or 0),
    concurrency = tonumber(field[15] or 0), inFlight = tonumber(field[16] or 0), hasQuotas = field[17] == '1',
    sampleOverProvision = tonumber(field[18] or 1), openedAtMs = tonumber(field[19]),
    longestTokens = tonumber(field[23] or 0), traceparent = field[24] or nil, priority = tonumber(field[25] or nil),
    equalRewards = field[26] or 'keep',
  }
end

-- What only cuts, returns and aborts need of a round, read once.
function Rounds.rules(tx, round)
  if not round.rules then
    local field = redis.call('HMGET', tx.key:round(round.job, round.roundId), 'maxFailures', 'maxReturns', 'maxCuts',
      'maxAgeSteps', 'maxVersionSpan', 'abortScope')
    round.rules = { maxFailures = tonumber(field[1]), maxReturns = tonumber(field[2]),
      maxCuts = tonumber(field[3] or 0), maxAgeSteps = tonumber(field[4] or 0),
      maxVersionSpan = tonumber(field[5] or -1), abortScope = field[6] or 'group' }
  end
  return round.rules
end

-- The id of the round that is named, or of the one that is not closed or was the last; or nil and the error to answer.
function Rounds.named(tx, job, named)
  local field = redis.call('HMGET', tx.key:job(job), 'trainerEpoch', 'lastRoundId')
  if not field[1] then return nil, Trainer.no_job(job) end
  local id = named or field[2]
  if id and redis.call('EXISTS', tx.key:round(job, id)) == 1 then return id end
  -- Without an id: a job that a reconciliation has made.
  local message = id and 'There is no round ' .. id or 'The job ' .. job .. ' has no round'
  return nil, Reply.fail('ROUND_NOT_FOUND', message, 'roundId')
end

-- `samples` is what the group needs, `launched` what it has; when samples are lost for good it may need fewer, down to
-- `minSamples`.
function Rounds.load_group(tx, job, group_id)
  local field = redis.call('HMGET', tx.key:group(job, group_id), 'state', 'samples', 'finished', 'live', 'roundId',
    'maxTokens', 'promptRef', 'sampling', 'arrival', 'launched', 'domain', 'firstStep', 'pinned', 'held', 'taken',
    'gated', 'minSamples', 'timeoutMs')
  if not field[1] then return nil end
  return {
    job = job, groupId = group_id, state = field[1], samples = tonumber(field[2]), finished = tonumber(field[3]),
    live = tonumber(field[4]), roundId = field[5], maxTokens = tonumber(field[6]), promptRef = field[7],
    sampling = field[8], arrival = tonumber(field[9] or 0), launched = tonumber(field[10] or field[2]),
    domain = field[11] or nil, firstStep = tonumber(field[12]), pinned = field[13] == '1', held = field[14] == '1',
    taken = field[15] == '1', gated = field[16] == '1', minSamples = tonumber(field[17] or field[2]),
    timeoutMs = tonumber(field[18] or nil),
  }
end

-- What the samples of a group came to, read once. A change of the hash changes or forgets `group.made`.
function Rounds.made(tx, group)
  if not group.made then
    local field = redis.call('HMGET', tx.key:group(group.job, group.groupId), 'tokens', 'longest', 'oldestVersion',
      'longestTokens', 'lengthBin', 'lengthKind', 'probedAt')
    group.made = { tokens = tonumber(field[1] or 0), longest = tonumber(field[2] or 0),
      oldestVersion = tonumber(field[3] or nil), longestTokens = tonumber(field[4] or 0),
      lengthBin = tonumber(field[5] or nil), lengthKind = field[6] or nil,
      probedAt = tonumber(field[7] or nil) }
  end
  return group.made
end

function Rounds.takes_results(round) return round.state == 'open' or round.state == 'opening' end

-- Its requests go to the long-tail queue, whatever their holders report.
function Rounds.is_cut(round, group) return not round or not Rounds.takes_results(round) or group.state == 'leaving' end

-- It has all the samples it needs; others are surplus.
function Rounds.is_whole(group) return group.finished >= group.samples end

function Rounds.bump(tx, round, field, by)
  return Counts.add(tx, tx.key:round(round.job, round.roundId), round.job, field, by)
end

function Rounds.sweep_name(round) return round.job .. '/' .. round.roundId end

-- The job and the roundId or groupId of a name in an index of the pool.
function Rounds.of_name(name) return string.match(name, '^([^/]+)/(.+)$') end

-- New groups that are still to be submitted.
local function to_come(round) return math.max(0, round.newGroups - round.submitted) end

-- Groups asked for as replacements: nothing that is live or still to be submitted can fill these places.
function Rounds.shortfall_of(round)
  return math.max(0, round.needed - round.accepted - round.live - to_come(round))
end

-- Another place, for a group that its accepted one is to be replaced by. What is live or to come may fill it, else
-- another group is to be submitted.
function Rounds.add_place(tx, round, group)
  round.needed = Rounds.bump(tx, round, 'neededGroups', 1)
  Places.add_for(tx, round, group)
  if Rounds.shortfall_of(round) > 0 then
    local more = math.max(round.newGroups, round.submitted) + 1 - round.newGroups
    round.newGroups = Rounds.bump(tx, round, 'newGroups', more)
  end
end

-- All its unaccepted groups are in the long-tail queue.
function Rounds.mark_settled(tx, round)
  redis.call('HSET', tx.key:round(round.job, round.roundId), 'settled', 1)
  round.settled = true
  -- A closed round stays in the sweep until it is folded.
  if round.state == 'completed' then redis.call('SREM', tx.key.sweeps, Rounds.sweep_name(round)) end
  Events.add(tx, 'round.settled', { job = round.job, roundId = round.roundId })
end

-- One flag, however many groups the round has: every script checks it, and the sweep follows.
function Rounds.complete(tx, round, reason)
  round.state = 'completed'
  redis.call('HSET', tx.key:round(round.job, round.roundId), 'state', 'completed', 'completedReason', reason,
    'completedAtMs', Format.integer(tx.now))
  redis.call('ZREM', tx.key.roundDeadlines, Rounds.sweep_name(round))
  -- Its gate holds nothing back any more: what is pending is to be cut.
  ClaimTurns.readmit(tx, round.job)
  Events.add(tx, 'round.completed', { job = round.job, roundId = round.roundId, step = round.step, reason = reason,
    acceptedGroups = round.accepted })
  if round.live > 0 then
    redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
    Counts.add_settling(tx, round.job, round.live)
  else
    Rounds.mark_settled(tx, round)
  end
end

function Rounds.accept_group(tx, round, group)
  local group_key = tx.key:group(group.job, group.groupId)
  if group.held then
    redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId)
  else
    Places.count_live(tx, round, group, -1)
  end
  Places.take(tx, round, group)
  redis.call('HSET', group_key, 'state', 'accepted', 'finishedMs', Format.integer(tx.now - round.openedAtMs))
  if group.pinned or group.held then redis.call('HDEL', group_key, 'pinned', 'held') end
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  redis.call('RPUSH', tx.key:roundAccepted(round.job, round.roundId), group.groupId)
  group.state, group.pinned, group.held = 'accepted', false, false
  local hash, made = tx.key:round(round.job, round.roundId), Rounds.made(tx, group)
  local kind = group.taken and 'tail' or 'bulk'
  round.longestTokens = math.max(round.longestTokens, made.longest)
  round.accepted, round.live = unpack(Counts.add_many(tx, hash, round.job, {
    'acceptedGroups', 1, 'liveGroups', -1, 'acceptedRequests', group.samples, 'acceptedTokens', made.tokens,
    kind .. 'Groups', 1,
  }, { kind .. 'Ms', Format.integer(tx.now - round.openedAtMs), 'longestTokens', round.longestTokens }))
  Lengths.count(tx, group, 'finished', round.step)
  Events.add(tx, 'round.progressed', { job = round.job, roundId = round.roundId, groupId = group.groupId,
    acceptedGroups = round.accepted, neededGroups = round.needed })
end

-- Gives free places to those that are held. True when there may be more than one script gives.
local PLACES_A_SCRIPT = 32
local function give_places(tx, round)
  local held = tx.key:roundHeld(round.job, round.roundId)
  if redis.call('EXISTS', held) == 0 then return false end
  for given = 0, PLACES_A_SCRIPT do
    local group_id = Places.free(tx, round) > 0 and redis.call('ZRANGE', held, 0, 0)[1]
    if not group_id then return false end
    if given == PLACES_A_SCRIPT then return true end
    local group = Rounds.load_group(tx, round.job, group_id)
    -- Those behind it have their turn when the abort has taken it out.
    if group and group.arrival <= round.abortedUpTo then return false end
    if group then
      Rounds.accept_group(tx, round, group)
    else
      Recovery.remove_live_group(tx, round, group_id)
    end
  end
end

-- Completes an open round that has all it can get. Not before all its groups are there.
function Rounds.review_round(tx, round)
  if not Rounds.takes_results(round) then return end
  if round.state == 'open' and to_come(round) == 0 then Places.release_domains(tx, round) end
  -- The sweep gives the rest.
  if give_places(tx, round) then redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round)) end
  if round.state ~= 'open' then return end
  local has_all = round.accepted >= round.needed
  local gets_no_more = round.shortfall == 'accept-fewer' and round.live == 0 and to_come(round) == 0
  if (has_all or gets_no_more) and Rewards.missing(tx, round) == 0 then
    Rounds.complete(tx, round, has_all and 'accepted' or 'accepted-fewer')
  end
end

-- What a round has left to do when a group has left it that was live, or was to come back to it.
function Rounds.review_left(tx, round)
  if Rounds.takes_results(round) then return Rounds.review_round(tx, round) end
  if round.cancelMode ~= 'drop' then Counts.add_settling(tx, round.job, -1) end
  if round.live == 0 then Rounds.mark_settled(tx, round) end
end

-- An accepted group is no result any more: an open round asks for another one, a cancelled one was to give it back.
-- `samples` is nil for a group that is gone.
function Rounds.leave_accepted(tx, round, group_id, samples)
  if redis.call('LREM', tx.key:roundAccepted(round.job, round.roundId), 1, group_id) == 0 then return end
  if round.state == 'cancelled' then
    round.live = Rounds.bump(tx, round, 'liveGroups', -1)
    return Rounds.review_left(tx, round)
  end
  round.accepted = Rounds.bump(tx, round, 'acceptedGroups', -1)
  if samples then Rounds.bump(tx, round, 'acceptedRequests', -samples) end
  Rewards.forget(tx, round, group_id, samples or 0)
  if round.hasQuotas then Places.add_spare(tx, round, 1) end
  Rounds.review_round(tx, round)
end

-- A live group leaves its round; its caller decides where it goes.
function Rounds.leave(tx, round, group)
  if group.pinned then
    Places.release_reserved(tx, round)
  elseif not group.held then
    Places.count_live(tx, round, group, -1)
  end
  if group.pinned or group.held then
    redis.call('HDEL', tx.key:group(group.job, group.groupId), 'pinned', 'held')
    redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group.groupId)
    group.pinned, group.held = false, false
  end
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group.groupId)
  round.live = Rounds.bump(tx, round, 'liveGroups', -1)
end

local EVERY_GROUP = '9007199254740991' -- as a number up to which all groups are aborted
-- Gives up a round that is not closed, by one flag (rounds/cancel.lua). Returns the number of groups that are given
-- back or dropped.
function Rounds.cancel(tx, round, mode, reason)
  local hash = tx.key:round(round.job, round.roundId)
  local groups = round.live + round.accepted
  -- Those that are to come into the queue, and those that were and will not.
  local to_come_back = mode == 'requeue' and groups or 0
  local settling = to_come_back - (round.state == 'completed' and round.live or 0)
  redis.call('HSET', hash, 'state', 'cancelled', 'cancelMode', mode, 'cancelReason', reason,
    'cancelledGroups', groups, 'liveGroups', groups, 'acceptedGroups', 0, 'settled', 0)
  if mode == 'drop' then redis.call('HSET', hash, 'abortedUpTo', EVERY_GROUP, 'abortedBy', 'round.cancel') end
  Counts.add_settling(tx, round.job, settling)
  Rewards.forget_all(tx, round)
  LostGroups.leave_to_next(tx, round.job, round.roundId)
  redis.call('HDEL', tx.key:job(round.job), 'openRoundId')
  redis.call('SREM', tx.key.openJobs, round.job)
  redis.call('ZREM', tx.key.roundDeadlines, Rounds.sweep_name(round))
  redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
  Events.add(tx, 'round.cancelled', { job = round.job, roundId = round.roundId, step = round.step, mode = mode,
    groups = groups, reason = reason })
  round.state, round.cancelMode, round.live, round.accepted, round.settled = 'cancelled', mode, groups, 0, false
  if groups == 0 then Rounds.mark_settled(tx, round) end
  return groups
end

return Rounds

-- A round as it is stored: a hash, whose fields no other file names. `Round.set`, `Round.add` and `Round.add_all` write
-- the hash and the table together.
local Round = {}

local function hash_of(tx, round) return tx.key:round(round.job, round.roundId) end

function Tx.fields.abort_of_pool(tx)
  local field = redis.call('HMGET', tx.key.meta, 'abortedUpTo', 'abortedBy')
  return { abortedUpTo = tonumber(field[1] or -1), abortedBy = field[2] }
end

-- A large abort is a number in the round, its job or the pool, which every transition compares: all groups submitted up
-- to that number are aborted. Returns the highest of the three numbers and its abortId, or -1.
local function abort_flag(tx, job, up_to, abort_id)
  local of_job, of_pool = Job.get(tx, job), tx.abort_of_pool
  if of_job.abortedUpTo > up_to then up_to, abort_id = of_job.abortedUpTo, of_job.abortedBy end
  if of_pool.abortedUpTo > up_to then up_to, abort_id = of_pool.abortedUpTo, of_pool.abortedBy end
  return up_to, abort_id
end

-- A round with the fields that most transitions need; nil for a round that is not there.
function Round.load(tx, job, round_id)
  local field = redis.call('HMGET', tx.key:round(job, round_id), 'state', 'neededGroups', 'acceptedGroups',
    'liveGroups', 'newGroups', 'submittedGroups', 'onCut', 'shortfall', 'weightVersion', 'step', 'settled',
    'cancelMode', 'cancelReason', 'reservedGroups', 'concurrency', 'inFlight', 'hasQuotas', 'sampleOverProvision',
    'openedAtMs', 'abortedUpTo', 'abortedBy', 'ledgerFolded', 'longestTokens', 'traceparent', 'priority',
    'equalRewards')
  if not field[1] then return nil end
  local aborted_up_to, aborted_by = abort_flag(tx, job, tonumber(field[20] or -1), field[21] or nil)
  return {
    job = job, roundId = round_id, state = field[1], neededGroups = tonumber(field[2]),
    acceptedGroups = tonumber(field[3]), liveGroups = tonumber(field[4]), newGroups = tonumber(field[5]),
    submittedGroups = tonumber(field[6]),
    -- A cancelled round discards nothing: its groups continue under the policy of a later round.
    discards = field[7] == 'discard' and not field[12], cancelMode = field[12] or nil, cancelReason = field[13] or nil,
    shortfall = field[8], weightVersion = tonumber(field[9]), step = tonumber(field[10]), settled = field[11] == '1',
    abortedUpTo = aborted_up_to, abortedBy = aborted_by, reservedGroups = tonumber(field[14] or 0),
    concurrency = tonumber(field[15] or 0), inFlight = tonumber(field[16] or 0), hasQuotas = field[17] == '1',
    sampleOverProvision = tonumber(field[18] or 1), openedAtMs = tonumber(field[19]), ledgerFolded = field[22] == '1',
    longestTokens = tonumber(field[23] or 0), traceparent = field[24] or nil, priority = tonumber(field[25] or nil),
    equalRewards = field[26] or 'keep',
  }
end

-- Rules that only cuts, returns and aborts need, read once.
function Round.rules(tx, round)
  if not round.rules then
    local field = redis.call('HMGET', hash_of(tx, round), 'maxFailures', 'maxReturns', 'maxCuts', 'maxAgeSteps',
      'maxVersionSpan', 'abortScope')
    round.rules = { maxFailures = tonumber(field[1]), maxReturns = tonumber(field[2]),
      maxCuts = tonumber(field[3] or 0), maxAgeSteps = tonumber(field[4] or 0),
      maxVersionSpan = tonumber(field[5] or -1), abortScope = field[6] or 'group' }
  end
  return round.rules
end

local COUNTS = { 'takenGroups', 'excludedGroups', 'excludedRequests', 'replacedGroups', 'maxReplacedGroups',
  'failedGroups', 'droppedGroups', 'cancelledGroups', 'leavingGroups', 'requestsDone', 'requestsCut', 'groupsRequeued',
  'acceptedRequests', 'acceptedTokens', 'bulkGroups', 'bulkMs', 'tailGroups', 'tailMs', 'takeGroups', 'ledgerGroups' }
local OTHERS = { 'kind', 'policy', 'choice', 'completedReason', 'completedAtMs', 'lastFailures', 'digest',
  'trainerEpoch', 'trainedDigest', 'tailControl', 'dispatchOrder', 'keepTokens', 'reservesTaken', 'records', 'folded' }

-- Adds to a round all its other fields, read once; counts that were never changed are 0. Returns the round.
function Round.read_rest(tx, round)
  if round.isWhole then return round end
  local hash = hash_of(tx, round)
  for position, count in ipairs(redis.call('HMGET', hash, unpack(COUNTS))) do
    round[COUNTS[position]] = tonumber(count or 0)
  end
  for position, value in ipairs(redis.call('HMGET', hash, unpack(OTHERS))) do
    round[OTHERS[position]] = value or nil
  end
  round.completedAtMs, round.keepTokens = tonumber(round.completedAtMs or nil), tonumber(round.keepTokens or nil)
  round.reservesTaken, round.folded = round.reservesTaken == '1', round.folded == '1'
  round.dispatchOrder = round.dispatchOrder or 'arrival'
  round.isWhole = true
  return round
end

-- The number up to which aborts of this round, not of its job or pool, have aborted groups; -1 without such an abort.
function Round.read_abort_flag(tx, round)
  return tonumber(redis.call('HGET', hash_of(tx, round), 'abortedUpTo') or -1)
end

function Round.read_state(tx, job, round_id) return redis.call('HGET', tx.key:round(job, round_id), 'state') or nil end

function Round.exists(tx, job, round_id) return redis.call('EXISTS', tx.key:round(job, round_id)) == 1 end

function Round.takes_results(round) return round.state == 'open' or round.state == 'opening' end

-- True when the requests of the group go to the long-tail queue, whatever their holders report.
function Round.is_cut(round, group) return not round or not Round.takes_results(round) or group.state == 'leaving' end

-- New groups that are still to be submitted.
function Round.count_coming(round) return math.max(0, round.newGroups - round.submittedGroups) end

-- Number of replacement groups to ask for: no group that is live or still to be submitted can fill these places.
function Round.count_shortfall(round)
  return math.max(0, round.neededGroups - round.acceptedGroups - round.liveGroups - Round.count_coming(round))
end

-- Name of the round in an index of the pool.
function Round.format_name(round) return round.job .. '/' .. round.roundId end

function Round.create(tx, job, round_id, fields)
  local hash = tx.key:round(job, round_id)
  Encodings.hash_as_table(hash) -- most transitions of a round read 30 of its fields
  Hashes.store(hash, nil, fields)
end

function Round.delete(tx, job, round_id)
  redis.call('UNLINK', tx.key:round(job, round_id), tx.key:roundLedger(job, round_id),
    tx.key:roundRecorded(job, round_id))
end

-- Sets fields; true is a flag that is set, false deletes a field.
function Round.set(tx, round, fields) Hashes.store(hash_of(tx, round), round, fields) end

-- Changes a count of the round by a number; returns the new count.
function Round.add(tx, round, field, by)
  local count = redis.call('HINCRBY', hash_of(tx, round), field, by)
  if count < 0 then Job.mark_miscount(tx, round.job) end
  round[field] = count
  return count
end

-- Changes many counts and sets other fields, with two calls.
function Round.add_all(tx, round, changes, fields)
  local names = {}
  for name in pairs(changes) do names[#names + 1] = name end
  for position, before in ipairs(redis.call('HMGET', hash_of(tx, round), unpack(names))) do
    local name = names[position]
    fields[name] = tonumber(before or 0) + changes[name]
    if fields[name] < 0 then Job.mark_miscount(tx, round.job) end
  end
  Round.set(tx, round, fields)
end

-- Changes the number of requests of the round that workers have, for a request of a gated group.
function Round.add_in_flight(tx, group, by)
  Round.add(tx, { job = group.job, roundId = group.roundId }, 'inFlight', by)
end

-- Counts an attempt that was returned unfinished, by reason.
function Round.add_returned(tx, round, reason) Round.add(tx, round, 'returned.' .. reason, 1) end

function Round.count_returned(tx, round, reason)
  return tonumber(redis.call('HGET', hash_of(tx, round), 'returned.' .. reason) or 0)
end

return Round

-- A job as it is stored: a hash, whose fields no other file names. A transition has one table of each job; `Job.set`
-- and `Job.add` write the hash and the table together.
local Job = {}

function Tx.fields.known_jobs() return {} end

-- Fields of a job that most transitions need; defaults for a job that is not there.
function Job.get(tx, job)
  local known = tx.known_jobs[job]
  if not known then
    local field = redis.call('HMGET', tx.key:job(job), 'abortedUpTo', 'abortedBy', 'trainerSeenAtMs', 'orphanAfterMs',
      'workerKind')
    known = { job = job, abortedUpTo = tonumber(field[1] or -1), abortedBy = field[2],
      trainerSeenAtMs = tonumber(field[3] or 0), orphanAfterMs = tonumber(field[4] or 0), workerKind = field[5] or nil }
    tx.known_jobs[job] = known
  end
  return known
end

-- Adds the other fields to the table; `trainerEpoch` is nil for a job that is not there, or is being deleted.
function Job.load(tx, job)
  local known = Job.get(tx, job)
  if known.isWhole then return known end
  local field = redis.call('HMGET', tx.key:job(job), 'trainerEpoch', 'stepsTrained', 'openRoundId', 'lastRoundId',
    'settlingGroups', 'submittedGroups', 'trainedGroups', 'excludedGroups', 'failedGroups', 'droppedGroups',
    'submittedTokens', 'deleting', 'tailControl', 'takeovers', 'saving', 'restoring', 'restorePhase', 'restoreCursor',
    'restoredFrom', 'restoredEpoch', 'restoredNumber')
  known.trainerEpoch, known.stepsTrained = field[1] or nil, tonumber(field[2] or 0)
  known.openRoundId, known.lastRoundId = field[3] or nil, field[4] or nil
  known.settlingGroups, known.submittedGroups = tonumber(field[5] or 0), tonumber(field[6] or 0)
  known.trainedGroups, known.excludedGroups = tonumber(field[7] or 0), tonumber(field[8] or 0)
  known.failedGroups, known.droppedGroups = tonumber(field[9] or 0), tonumber(field[10] or 0)
  known.submittedTokens, known.deleting = tonumber(field[11] or 0), field[12] == '1'
  known.tailControl, known.takeovers = field[13] or nil, field[14] or '[]'
  -- Numbers of snapshots, as texts.
  known.saving, known.restoring = field[15] or nil, field[16] or nil
  known.restorePhase, known.restoreCursor = field[17] or nil, field[18] or nil
  known.restoredFrom, known.restoredEpoch, known.restoredNumber = field[19] or nil, field[20] or nil, field[21] or nil
  known.isWhole = true
  return known
end

function Job.exists(tx, job) return redis.call('EXISTS', tx.key:job(job)) == 1 end

-- One field, for transitions that need no other.
function Job.read_epoch(tx, job) return redis.call('HGET', tx.key:job(job), 'trainerEpoch') or nil end
function Job.read_open_round(tx, job) return redis.call('HGET', tx.key:job(job), 'openRoundId') or nil end

-- Whether the trainer has been silent for too long: no request of the job is claimed then.
function Job.is_orphaned(tx, known) return tx.now > known.trainerSeenAtMs + known.orphanAfterMs end

-- Sets fields; false deletes a field.
function Job.set(tx, job, fields) Hashes.store(tx.key:job(job), tx.known_jobs[job], fields) end

-- Notes an impossible count: Redis has lost a record, and upkeep recounts the job from its requests.
function Job.mark_miscount(tx, job)
  redis.call('HINCRBY', tx.key.meta, 'miscounts', 1)
  redis.call('SADD', tx.key.miscountedJobs, job)
  -- A recount that is under way may have visited the requests concerned before: another recount follows.
  if redis.call('EXISTS', tx.key:recount(job)) == 1 then redis.call('HSET', tx.key:recount(job), 'again', 1) end
end

-- Changes a count of the job by a number; returns the new count.
function Job.add(tx, job, field, by)
  local count = redis.call('HINCRBY', tx.key:job(job), field, by)
  if count < 0 then Job.mark_miscount(tx, job) end
  local known = tx.known_jobs[job]
  if known then known[field] = count end
  return count
end

function Job.delete(tx, job)
  redis.call('UNLINK', tx.key:job(job))
  tx.known_jobs[job] = nil
end

-- Fields that fence the trainers of the job or describe a save or restore under way; a restore never sets these back.
local FENCES = { 'trainerEpoch', 'takeovers', 'trainerSeenAtMs', 'abortedUpTo', 'abortedBy', 'saving', 'restoring',
  'restorePhase', 'restoreCursor', 'restoredFrom', 'restoredEpoch', 'restoredNumber' }

-- Copies all fields of the job for a snapshot.
function Job.copy(tx, job) return Hashes.all(tx.key:job(job)) end

-- Restores the job from its copy in a snapshot and ends the restore.
function Job.restore(tx, job, saved)
  local kept = redis.call('HMGET', tx.key:job(job), unpack(FENCES))
  Job.delete(tx, job)
  for position, name in ipairs(FENCES) do saved[name] = kept[position] or nil end
  saved.restoring, saved.restorePhase, saved.restoreCursor = nil, nil, nil
  Hashes.set(tx.key:job(job), saved)
end

-- Splits a name in an index of the pool into the job and the roundId or groupId.
function Job.parse_name(name) return string.match(name, '^([^/]+)/(.+)$') end

return Job

-- Snapshots of a job: what it has between two rounds, by reference.
local Snapshots = {}

Snapshots.SAVED_GROUPS = 'groups'
Snapshots.SAVED_ROUNDS = 'rounds'
-- Keys of the job that are copied whole; small ones only.
Snapshots.COPIED = { counts = 'counts', ledger = 'jobLedger', openLengths = 'openLengths' }
-- Lengths of the last steps are copied too, and of the next one, whose round may have been cancelled; they change
-- later.
Snapshots.SAVED_LENGTHS = 8
function Snapshots.lengths_part(tx, job, number, back) return tx.key:snapshotPart(job, number, 'lengths-'
  .. back) end

-- What says who may speak and what came before; a restore never turns these back.
Snapshots.FENCES = { 'trainerEpoch', 'takeovers', 'trainerSeenAtMs', 'abortedUpTo', 'abortedBy', 'saving',
  'restoring', 'restorePhase', 'restoreCursor', 'restoredFrom', 'restoredEpoch', 'restoredNumber' }

-- Nothing of the job moves: no round, nobody has a request of it, and what is closed is folded. Else the error to
-- answer.
function Snapshots.unrest_of(tx, job)
  local field = redis.call('HMGET', tx.key:job(job), 'openRoundId', 'settlingGroups')
  if field[1] then
    return Reply.fail('ROUND_CONFLICT', 'Round ' .. field[1] .. ' of the job is neither closed nor cancelled', 'job')
  end
  local live = redis.call('HMGET', tx.key:counts(job), 'pending', 'claimed', 'running', 'cutting')
  local moving = tonumber(field[2] or 0)
  for position = 1, 4 do moving = moving + tonumber(live[position] or 0) end
  for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(job), -32, -1)) do
    if redis.call('HGET', tx.key:round(job, round_id), 'folded') ~= '1' then moving = moving + 1 end
  end
  if moving > 0 then return Reply.fail('ROUND_SETTLING', 'An earlier round is not settled yet', nil, 50) end
end

-- What changes when anything of a job at rest is dropped or aborted, or a round of it was cancelled.
function Snapshots.state_mark(tx, job)
  local field = redis.call('HMGET', tx.key:job(job), 'stepsTrained', 'submittedGroups', 'droppedGroups', 'lastRoundId')
  return table.concat({ field[1] or '0', field[2] or '0', field[3] or '0',
    Format.integer(redis.call('ZCARD', tx.key:longtail(job))), field[4] or '' }, '/')
end

function Snapshots.retire(tx, job, number)
  redis.call('SADD', tx.key.oldSnapshots, job .. '/' .. number)
end

function Snapshots.json(tx, job, number)
  local field = redis.call('HMGET', tx.key:snapshot(job, number), 'tag', 'step', 'groups', 'requests', 'savedAtMs')
  return { tag = field[1], step = tonumber(field[2]), groups = tonumber(field[3]), requests = tonumber(field[4]),
    savedAtMs = tonumber(field[5] or nil) }
end

return Snapshots

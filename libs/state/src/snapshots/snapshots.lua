-- Snapshots of a job: its state between two rounds, with payloads by reference.
local Snapshots = {}

function Snapshots.groups(tx, job, number) return tx.key:snapshotPart(job, number, 'groups') end

-- Copy of the zset of the job's rounds.
function Snapshots.rounds(tx, job, number) return tx.key:snapshotPart(job, number, 'rounds') end

-- The small keys of a job that are copied whole: key of the copy -> key of the job. `step`: step of the snapshot.
-- Lengths are copied for the last steps, and for the next step, whose round may have been cancelled.
function Snapshots.copies(tx, job, number, step)
  local copies = {}
  local function add(part, key) copies[tx.key:snapshotPart(job, number, part)] = key end
  add('counts', tx.key:counts(job))
  add('ledger', tx.key:jobLedger(job))
  add('openLengths', tx.key:openLengths(job))
  for back = -1, Lengths.HISTORY_STEPS - 1 do
    add('lengths-' .. back, tx.key:lengths(job, Format.integer(step - back)))
  end
  return copies
end

-- Nil when the job is at rest: no open round, no pending request and none with a worker, and all closed rounds folded.
-- Otherwise the error to answer.
function Snapshots.unrest_of(tx, job)
  local known = Job.load(tx, job)
  if known.openRoundId then
    return Reply.fail('ROUND_CONFLICT',
      'Round ' .. known.openRoundId .. ' of the job is neither closed nor cancelled', 'job')
  end
  local moving = known.settlingGroups + ClaimTurns.held_by_workers(tx, job)
    + tonumber(redis.call('HGET', tx.key:counts(job), 'pending') or 0)
  for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(job), -32, -1)) do
    local round = Round.load(tx, job, round_id)
    if not round or not Round.read_rest(tx, round).folded then moving = moving + 1 end
  end
  if moving > 0 then return Reply.fail('ROUND_SETTLING', 'An earlier round is not settled yet', nil, 50) end
end

-- Text that changes when a group of a job at rest is dropped or aborted, or when a round of the job was cancelled.
function Snapshots.state_mark(tx, job)
  local known = Job.load(tx, job)
  return table.concat({ Format.integer(known.stepsTrained), Format.integer(known.submittedGroups),
    Format.integer(known.droppedGroups), Format.integer(redis.call('ZCARD', tx.key:longtail(job))),
    known.lastRoundId or '' }, '/')
end

-- Leaves a snapshot to the sweep, which deletes it.
function Snapshots.retire(tx, job, number) redis.call('SADD', tx.key.oldSnapshots, job .. '/' .. number) end

-- Removes complete snapshots from the list of their job.
function Snapshots.remove(tx, job, tags)
  for _, tag in ipairs(tags) do
    Snapshots.retire(tx, job, redis.call('ZSCORE', tx.key:snapshots(job), tag))
    redis.call('ZREM', tx.key:snapshots(job), tag)
  end
  return tags[1] ~= nil
end

-- Snapshot of the protocol.
function Snapshots.header(tx, job, number)
  local field = redis.call('HMGET', tx.key:snapshot(job, number), 'tag', 'step', 'groups', 'requests', 'savedAtMs')
  return { tag = field[1], step = tonumber(field[2]), groups = tonumber(field[3]), requests = tonumber(field[4]),
    savedAtMs = tonumber(field[5] or nil) }
end

return Snapshots

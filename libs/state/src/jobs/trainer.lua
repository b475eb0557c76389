-- Checks of trainer calls: a call is accepted only with the current epoch of its job and the present generation.
local Trainer = {}

function Trainer.deleting() return Reply.fail('JOB_IN_USE', 'The job is being deleted', 'job', 200) end

function Trainer.no_job(job, details)
  return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. job, 'job', nil, details)
end

-- The error to answer unless the epoch is current; else nil.
function Trainer.error(tx, job, trainer_epoch)
  local current = Job.read_epoch(tx, job)
  if not current then return Trainer.no_job(job) end
  if current ~= trainer_epoch then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
end

-- The error to answer unless the stamp and the epoch are current; else nil. Without a trainerEpoch only the stamp is
-- compared.
function Trainer.refusal(tx, args)
  return Generation.stamp_error(tx, args.stamp)
    or args.trainerEpoch and Trainer.error(tx, args.job, args.trainerEpoch) or nil
end

-- The round that a trainer names, or nil and the error to answer.
function Trainer.round(tx, args)
  local refused = Trainer.refusal(tx, args)
  if refused then return nil, refused end
  local round = Round.load(tx, args.job, args.roundId)
  if round then return round end
  return nil, Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId')
end

-- Id of the round that the arguments name, else of the open round, else of the last round; or nil and an error reply.
function Trainer.named_round(tx, job, named)
  local known = Job.load(tx, job)
  if not known.trainerEpoch then return nil, Trainer.no_job(job) end
  local id = named or known.lastRoundId
  if id and Round.exists(tx, job, id) then return id end
  -- A job that a reconciliation created has no last round.
  local message = id and 'There is no round ' .. id or 'The job ' .. job .. ' has no round'
  return nil, Reply.fail('ROUND_NOT_FOUND', message, 'roundId')
end

-- The error to answer while the job is being restored; else nil.
function Trainer.restore_error(tx, job)
  if not Job.load(tx, job).restoring then return nil end
  return Reply.fail('RESTORE_UNFINISHED', 'The job is being restored; repeat job.restore', 'job', 50)
end

-- Notes that the trainer lives, so that the requests of its job may be claimed.
function Trainer.seen(tx, job)
  Job.set(tx, job, { trainerSeenAtMs = tx.now })
  ClaimTurns.readmit(tx, job)
end

local TAKEOVERS_REMEMBERED = 16
local function load_takeovers(tx, job) return cjson.decode(Job.load(tx, job).takeovers) end

-- The epoch that the takeover with this id started, or nil. A repeat gets the same epoch.
function Trainer.epoch_of_takeover(tx, job, takeover_id)
  for _, takeover in ipairs(load_takeovers(tx, job)) do
    if takeover.id == takeover_id then return takeover.epoch end
  end
end

-- Starts a new epoch of the job, which fences every earlier trainer.
function Trainer.begin_epoch(tx, job, takeover_id, epoch)
  local takeovers = load_takeovers(tx, job)
  table.insert(takeovers, { id = takeover_id, epoch = epoch })
  if #takeovers > TAKEOVERS_REMEMBERED then table.remove(takeovers, 1) end
  Job.set(tx, job, { trainerEpoch = epoch, takeovers = cjson.encode(takeovers) })
end

return Trainer

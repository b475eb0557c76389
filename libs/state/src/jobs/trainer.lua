-- What a trainer asks counts only with the current epoch of its job, and when it has seen the present generation.
local Trainer = {}

function Trainer.no_job(job) return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. job, 'job') end

-- Returns nil, or the error to answer.
function Trainer.error(tx, job, trainer_epoch)
  local current = redis.call('HGET', tx.key:job(job), 'trainerEpoch')
  if not current then return Trainer.no_job(job) end
  if current ~= trainer_epoch then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
end

-- Returns nil, or the error to answer. Without a trainerEpoch only the stamp is compared.
function Trainer.refusal(tx, args)
  return Generation.stamp_error(tx, args.stamp)
    or args.trainerEpoch and Trainer.error(tx, args.job, args.trainerEpoch) or nil
end

-- The round that a trainer names, or nil and the error to answer.
function Trainer.round(tx, args)
  local refused = Trainer.refusal(tx, args)
  if refused then return nil, refused end
  local round = Rounds.load(tx, args.job, args.roundId)
  if round then return round end
  return nil, Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId')
end

-- The trainer lives, so the requests of its job may be claimed.
function Trainer.seen(tx, job)
  redis.call('HSET', tx.key:job(job), 'trainerSeenAtMs', Format.integer(tx.now))
  ClaimTurns.readmit(tx, job)
end

return Trainer

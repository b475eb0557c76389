-- The trainer's word counts only with the current epoch of its job. Returns nil, or the error to answer.
local Trainer = {}

function Trainer.error(tx, job, trainer_epoch)
  local current = redis.call('HGET', tx.key:job(job), 'trainerEpoch')
  if not current then return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. job, 'job') end
  if current ~= trainer_epoch then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
end

-- It lives, so its requests may be claimed.
function Trainer.seen(tx, job)
  redis.call('HSET', tx.key:job(job), 'trainerSeenAtMs', Format.integer(tx.now))
  ClaimTurns.readmit(tx, job)
end

return Trainer

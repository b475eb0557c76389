--- @include "clock"
--- @include "reply"
--- @include "turns"
-- The trainer's word counts only with the current epoch of its job. Returns nil, or the error to answer.
local function trainer_error(job, trainer_epoch)
  local current = redis.call('HGET', key.job(job), 'trainerEpoch')
  if not current then return fail('JOB_NOT_FOUND', 'There is no job ' .. job, 'job') end
  if current ~= trainer_epoch then
    return fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
end

-- It lives, so its requests may be claimed.
local function saw_trainer(job)
  redis.call('HSET', key.job(job), 'trainerSeenAtMs', string.format('%.0f', now_ms()))
  readmit_job(job)
end

--- @include "keys"
--- @include "reply"
-- The last calls that gave a job to a trainer, by the id of the caller, so that a repeat gets the same epoch.
local TAKEOVERS_REMEMBERED = 16
local function load_takeovers(job) return cjson.decode(redis.call('HGET', key.job(job), 'takeovers') or '[]') end

-- The epoch that the call of this id began, or nil.
local function epoch_of_takeover(job, takeover_id)
  for _, takeover in ipairs(load_takeovers(job)) do
    if takeover.id == takeover_id then return takeover.epoch end
  end
end

-- Begins a new epoch of the job: every trainer before is fenced.
local function begin_epoch(job, takeover_id, epoch)
  local takeovers = load_takeovers(job)
  table.insert(takeovers, { id = takeover_id, epoch = epoch })
  if #takeovers > TAKEOVERS_REMEMBERED then table.remove(takeovers, 1) end
  redis.call('HSET', key.job(job), 'trainerEpoch', epoch, 'takeovers', cjson.encode(takeovers))
end

-- The last calls that gave a job to a trainer, by the id of the caller, so that a repeat gets the same epoch.
local Takeovers = {}

local TAKEOVERS_REMEMBERED = 16
local function load_takeovers(tx, job) return cjson.decode(redis.call('HGET', tx.key:job(job), 'takeovers') or '[]') end

-- The epoch that the call of this id began, or nil.
function Takeovers.epoch_of_takeover(tx, job, takeover_id)
  for _, takeover in ipairs(load_takeovers(tx, job)) do
    if takeover.id == takeover_id then return takeover.epoch end
  end
end

-- Begins a new epoch of the job: every trainer before is fenced.
function Takeovers.begin_epoch(tx, job, takeover_id, epoch)
  local takeovers = load_takeovers(tx, job)
  table.insert(takeovers, { id = takeover_id, epoch = epoch })
  if #takeovers > TAKEOVERS_REMEMBERED then table.remove(takeovers, 1) end
  redis.call('HSET', tx.key:job(job), 'trainerEpoch', epoch, 'takeovers', cjson.encode(takeovers))
end

return Takeovers

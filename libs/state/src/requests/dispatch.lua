-- Places in the pending queue; the lowest is claimed first. A place is the arrival number of the request, less TOKEN
-- for each token that the request is expected to have: longer requests come first, and equal requests in the order of
-- arrival. Probes come before other requests, and started requests before probes. libs/policies/src/dispatch decides
-- the expected tokens and the probes.
local Dispatch = { TOKEN = 2 ^ 12, PROBE = 2 ^ 38, BEGUN = 2 ^ 40 }

-- After a sample of a probed group has finished, its pending samples are expected to be as long as its longest sample.
function Dispatch.follow_probe(tx, group)
  Group.read_made(tx, group)
  if not group.probedAt then return end
  local first = group.probedAt - group.longest * Dispatch.TOKEN
  for index = 0, group.launched - 1 do
    local id = Request.format_id(group.job, group.groupId, index)
    if redis.call('ZSCORE', tx.key:pending(group.job), id) then
      redis.call('ZADD', tx.key:pending(group.job), 'XX', Format.integer(first + index), id)
    end
  end
end

return Dispatch

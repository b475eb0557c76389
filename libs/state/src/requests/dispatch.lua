-- Places in the pending queue; the lowest is claimed first. A place is the arrival number of the request, less TOKEN
-- for each token that it is expected to have: longer requests come first, and equal ones in the order of arrival.
-- Probes come before them, and requests that have begun before probes. dispatchOf of libs/policies decides what is
-- expected and what is a probe.
local Dispatch = { TOKEN = 2 ^ 12, PROBE = 2 ^ 38, BEGUN = 2 ^ 40 }

-- After a sample of a probed group has finished, its pending samples are expected to be as long as the longest one.
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

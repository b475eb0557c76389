-- Places in the pending queue, the lowest is claimed first: by arrival, less so much for each token that a request is
-- expected to have that the order of arrival only decides among equals. A probe goes ahead of all these, and what was
-- begun before ahead of a probe. What is expected, and what is a probe: dispatchOf of libs/policies.
local Dispatch = { TOKEN = 2 ^ 12, PROBE = 2 ^ 38, BEGUN = 2 ^ 40 }

-- A sample of a group has finished: those that are pending after its probe are expected to be as long as the longest.
function Dispatch.follow_probe(tx, group)
  local made = Rounds.made(tx, group)
  if not made.probedAt then return end
  local first = made.probedAt - made.longest * Dispatch.TOKEN
  for index = 0, group.launched - 1 do
    local id = Requests.id_of(group.job, group.groupId, index)
    if redis.call('ZSCORE', tx.key:pending(group.job), id) then
      redis.call('ZADD', tx.key:pending(group.job), 'XX', Format.integer(first + index), id)
    end
  end
end

return Dispatch

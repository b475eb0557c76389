-- The mechanism of a cut, of an abort, of surplus siblings and of a change of weights: what nobody has ends at once, by
-- `ending`; what a worker has becomes `cutting` and is listed for an abort command, again each time until it is
-- confirmed (request.fail) or its holder is void.
local Cancellation = {}

function Cancellation.stop_held(tx, request, group, aborts)
  if request.state ~= 'cutting' then Requests.move(tx, request, group, 'cutting') end
  table.insert(aborts, { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
    workerEpoch = request.workerEpoch })
end

-- `wanted`, if given, says of which. Returns the id of a request that is not there, if any.
function Cancellation.stop_live(tx, group, aborts, ending, wanted)
  local missing
  for index = 0, group.launched - 1 do
    local id = Requests.id_of(group.job, group.groupId, index)
    local request = Requests.load(tx, id)
    if not request then
      missing = id
    elseif wanted and not wanted(request) then
      -- It goes on.
    elseif request.state == 'pending' then
      ending(request)
    elseif Requests.HELD[request.state] then
      if not WorkerFence.is_current(tx, request.workerId, request.workerEpoch) then
        ending(request)
      else
        Cancellation.stop_held(tx, request, group, aborts)
      end
    end
  end
  return missing
end

return Cancellation

-- Stops of requests for a cut, an abort, surplus siblings or a change of weights: a request without a holder ends at
-- once, by `ending`; a request that a worker has becomes `cutting` and is listed for an abort command, again each time
-- until the worker confirms (request.fail) or is expired.
local Cancellation = {}

function Cancellation.stop_held(tx, request, group, aborts)
  if request.state ~= 'cutting' then Requests.move(tx, request, group, 'cutting') end
  table.insert(aborts, Request.fence(request))
end

-- Does nothing to a request that has ended.
function Cancellation.stop(tx, request, group, aborts, ending)
  if request.state == 'pending' then return ending(request) end
  if not Request.HELD[request.state] then return end
  if WorkerFence.is_current(tx, request.workerId, request.workerEpoch) then
    Cancellation.stop_held(tx, request, group, aborts)
  else
    ending(request)
  end
end

return Cancellation

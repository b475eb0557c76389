-- The mechanism of a cut, of an abort, of surplus siblings and of a change of weights: a request without a holder ends
-- at once, by `ending`; what a worker has becomes `cutting` and is listed for an abort command, again each time until
-- it is confirmed (request.fail) or its holder is expired.
local Cancellation = {}

function Cancellation.stop_held(tx, request, group, aborts)
  if request.state ~= 'cutting' then Requests.move(tx, request, group, 'cutting') end
  table.insert(aborts, Requests.fence(request))
end

-- Does nothing to a request that has ended.
function Cancellation.stop(tx, request, group, aborts, ending)
  if request.state == 'pending' then return ending(request) end
  if not Requests.HELD[request.state] then return end
  if WorkerFence.is_current(tx, request.workerId, request.workerEpoch) then
    Cancellation.stop_held(tx, request, group, aborts)
  else
    ending(request)
  end
end

-- `round` is that of the group, or nil; `wanted`, if given, selects the requests. A group of which a request is gone
-- ends, unless it needs it no longer.
function Cancellation.stop_live(tx, round, group, aborts, ending, wanted)
  local requests, is_lost = Recovery.requests_of(tx, group)
  for _, request in ipairs(requests) do
    if not wanted or wanted(request) then Cancellation.stop(tx, request, group, aborts, ending) end
  end
  if is_lost then Recovery.lose_group(tx, round, group) end
end

return Cancellation

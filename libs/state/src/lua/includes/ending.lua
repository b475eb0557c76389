--- @include "worker-fence"
--- @include "transition"
-- The mechanism of a cut, of an abort, of surplus siblings and of a change of weights: what nobody has ends at once, by
-- `ending`; what a worker has becomes `cutting` and is listed for an abort command, again each time until it is confirmed (request.fail) or its holder is void.
local function stop_held(request, group, aborts)
  if request.state ~= 'cutting' then move_request(request, group, 'cutting') end
  table.insert(aborts, { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
    workerEpoch = request.workerEpoch })
end

-- `wanted`, if given, says of which. Returns the id of a request that is not there, if any.
local function end_live_requests(group, aborts, ending, wanted)
  local missing
  for index = 0, group.launched - 1 do
    local id = request_id(group.job, group.groupId, index)
    local request = load_request(id)
    if not request then
      missing = id
    elseif wanted and not wanted(request) then
      -- It goes on.
    elseif request.state == 'pending' then
      ending(request)
    elseif HELD[request.state] then
      if not worker_is_current(request.workerId, request.workerEpoch) then
        ending(request)
      else
        stop_held(request, group, aborts)
      end
    end
  end
  return missing
end

-- Groups and requests that an index names and that are not there: Redis has lost a part of its keys. Each loss is
-- counted, and the recount of the job mends counts that cannot be known here. requests/recovery.lua decides about the
-- group and its round.
local LostRecords = {}

local LOST = { reason = 'lost' }

-- The state of a request that is not there, as far as indexes and counts show it. `live` and `finished`: how many of
-- the known requests of its group are live or finished so far.
local function state_of_missing(tx, group, id, live, finished)
  if redis.call('ZREM', tx.key:pending(group.job), id) == 1 then return 'pending' end
  if group.live > live then
    for _, state in ipairs({ 'running', 'claimed', 'cutting' }) do
      if tonumber(redis.call('HGET', tx.key:counts(group.job), state) or 0) > 0 then return state end
    end
    return 'running'
  end
  if group.finished > finished then return 'finished' end
  return (group.state == 'dropped' or group.state == 'failed') and 'dropped' or 'unfinished'
end

-- All requests of a group, in their order. Each request that is not there is stored again as dropped, and the counters
-- of the group follow from the other requests. Second result: true when a request was gone.
function LostRecords.load_requests(tx, group)
  local requests, missing, live, finished = {}, {}, 0, 0
  for index = 0, group.launched - 1 do
    local request = Request.load(tx, Request.format_id(group.job, group.groupId, index))
    requests[index + 1] = request
    if not request then table.insert(missing, index)
    elseif Request.LIVE[request.state] then live = live + 1
    elseif request.state == 'finished' then finished = finished + 1 end
  end
  if #missing == 0 then return requests, false end
  local live_now, finished_now = live, finished
  for _, index in ipairs(missing) do
    local id = Request.format_id(group.job, group.groupId, index)
    Counts.note_lost(tx, group.job, id)
    local was = state_of_missing(tx, group, id, live, finished)
    if Request.LIVE[was] then live = live + 1 elseif was == 'finished' then finished = finished + 1 end
    Counts.add_requests(tx, group.job, was, -1)
    Counts.add_requests(tx, group.job, 'dropped', 1)
    if Request.HELD[was] and group.gated then Round.add_in_flight(tx, group, -1) end
    Request.create(tx, id, { state = 'dropped' })
    requests[index + 1] = Request.load(tx, id)
  end
  Group.set(tx, group, { live = live_now, finished = finished_now })
  return requests, true
end

-- Drops the rest of a group that is in no round any more.
function LostRecords.drop_rest(tx, group)
  LostGroups.note(tx, group, 'dropped', LOST)
  LongtailQueue.remove(tx, group.job, group.groupId)
  redis.call('ZREM', tx.key.abortingGroups, Group.format_name(group))
  redis.call('ZREM', tx.key.leavingGroups, Group.format_name(group))
  for _, request in ipairs(LostRecords.load_requests(tx, group)) do
    if request.state ~= 'dropped' then Requests.move(tx, request, group, 'dropped') end
  end
  Group.set(tx, group, { state = 'dropped', dropReason = 'lost' })
  Job.add(tx, group.job, 'droppedGroups', 1)
  redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now), Group.format_name(group))
end

-- Drops a request whose group is not there.
function LostRecords.drop_request(tx, request)
  Requests.move(tx, request, { job = request.job, groupId = request.groupId, live = 0, finished = 0 }, 'dropped')
end

-- Deletes the requests of a group that is not there: requests without a holder now, others when their worker reports
-- them or is expired.
function LostRecords.delete_requests(tx, job, group_id)
  Counts.note_lost(tx, job, job .. '/' .. group_id)
  LostGroups.note(tx, { job = job, groupId = group_id }, 'dropped', LOST)
  GroupDeletion.delete(tx, job, group_id, GroupDeletion.MAX_SAMPLES, nil, function(request)
    if Request.HELD[request.state] then return true end
    LostRecords.drop_request(tx, request)
  end)
end

-- Takes a live group that is not there out of the round that names it. The caller has to review the round afterwards.
function LostRecords.remove_live_group(tx, round, group_id)
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group_id)
  redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group_id)
  Round.add(tx, round, 'liveGroups', -1)
  LostRecords.delete_requests(tx, round.job, group_id)
end

return LostRecords

--- @include "aborts"
-- Requests that an index names and that cannot be run: a Redis that came back without a part of its keys. What is left
-- of the group is failed or dropped and counted, so that everything else goes on; the audit says what the books lack.

-- The state of a request that is not there, as far as its index tells.
local function booked_state(job, from)
  if from == 'pending' then return from end
  for _, state in ipairs({ 'running', 'claimed', 'cutting' }) do
    if tonumber(redis.call('HGET', key.books(job), state) or 0) > 0 then return state end
  end
  return 'running'
end

-- A request without its group is nothing: it ends.
local function lose_request(request)
  local group = { live = 0, finished = 0 }
  move_request(request, group, 'dropped')
  redis.call('UNLINK', key.request(request.id), key.group(request.job, request.groupId))
end

-- A group without its round, or with a sample that is gone, can never be trained.
local function lose_group(round, group)
  if group.state == 'dropped' or group.state == 'failed' then return end
  if round and group.state == 'live' and takes_results(round) then return fail_group(round, group, {}) end
  -- What workers still have of it is told to them by the sweep.
  if round and may_be_aborted(group) then return drop_group(round, group, 'lost', nil, {}) end
  leave_longtail(group.job, group.groupId)
  redis.call('ZREM', key.abortingGroups, group.job .. '/' .. group.groupId)
  redis.call('ZREM', key.leavingGroups, group.job .. '/' .. group.groupId)
  for index = 0, group.launched - 1 do
    local request = load_request(request_id(group.job, group.groupId, index))
    if request and request.state ~= 'dropped' then move_request(request, group, 'dropped') end
  end
  redis.call('HSET', key.group(group.job, group.groupId), 'state', 'dropped', 'dropReason', 'lost')
  redis.call('HINCRBY', key.job(group.job), 'droppedGroups', 1)
  redis.call('ZADD', key.droppedGroups, integer(now_ms()), group.job .. '/' .. group.groupId)
  group.state = 'dropped'
end

-- A live group that its round names and that is not there: nothing can become of it.
local function lose_live_group(round, group_id)
  note_lost(round.job, round.job .. '/' .. group_id)
  redis.call('ZREM', key.roundGroups(round.job, round.roundId), group_id)
  redis.call('ZREM', key.roundHeld(round.job, round.roundId), group_id)
  round.live = bump(round, 'liveGroups', -1)
  if takes_results(round) then return review_round(round) end
  if round.cancelMode ~= 'drop' then count_settling(round.job, -1) end
  if round.live == 0 then mark_settled(round) end
end

-- Puts a request in the place of one that is gone, so that its group is whole for every script, and ends the group.
local function lose_missing(id, from, remove_entry)
  remove_entry()
  local job, group_id, index = string.match(id, '^([^/]+)/([^/]+)/(%d+)$')
  if not job then return end
  note_lost(job, id)
  local state = booked_state(job, from)
  count_requests(job, state, -1)
  count_requests(job, 'dropped', 1)
  local group = load_group(job, group_id)
  if not group or tonumber(index) >= group.launched then return end
  redis.call('HSET', key.request(id), 'state', 'dropped', 'attempt', 0, 'failures', 0)
  group.live = count_in(key.group(job, group_id), job, 'live', -1)
  lose_group(load_round(job, group.roundId), group)
end

-- The group and round of a request, or nil: then it was lost with them.
local function owners_of(request)
  local group = load_group(request.job, request.groupId)
  if not group then
    note_lost(request.job, request.id)
    lose_request(request)
    return nil
  end
  local round = load_round(request.job, group.roundId)
  if not round and group.state ~= 'aborting' and group.state ~= 'dropped' then
    note_lost(request.job, request.id)
    lose_group(nil, group)
    return nil
  end
  return group, round
end

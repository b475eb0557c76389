-- Requests that an index names and that cannot be run: a Redis that came back without a part of its keys. What is left
-- of the group is failed or dropped and counted, so that everything else goes on; the audit says what the books lack.
local Recovery = {}

-- The state of a request that is not there, as far as its index tells.
local function booked_state(tx, job, from)
  if from == 'pending' then return from end
  for _, state in ipairs({ 'running', 'claimed', 'cutting' }) do
    if tonumber(redis.call('HGET', tx.key:books(job), state) or 0) > 0 then return state end
  end
  return 'running'
end

-- A request without its group is nothing: it ends.
local function lose_request(tx, request)
  local group = { live = 0, finished = 0 }
  Requests.move(tx, request, group, 'dropped')
  redis.call('UNLINK', tx.key:request(request.id), tx.key:group(request.job, request.groupId))
end

-- A group without its round, or with a sample that is gone, can never be trained.
local function lose_group(tx, round, group)
  if group.state == 'dropped' or group.state == 'failed' then return end
  if round and group.state == 'live' and Rounds.takes_results(round) then
    return Longtail.fail_group(tx, round, group, {})
  end
  -- What workers still have of it is told to them by the sweep.
  if round and Aborts.may_be_aborted(group) then return Aborts.drop_group(tx, round, group, 'lost', nil, {}) end
  Longtail.leave(tx, group.job, group.groupId)
  redis.call('ZREM', tx.key.abortingGroups, group.job .. '/' .. group.groupId)
  redis.call('ZREM', tx.key.leavingGroups, group.job .. '/' .. group.groupId)
  for index = 0, group.launched - 1 do
    local request = Requests.load(tx, Requests.id_of(group.job, group.groupId, index))
    if request and request.state ~= 'dropped' then Requests.move(tx, request, group, 'dropped') end
  end
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'dropped', 'dropReason', 'lost')
  redis.call('HINCRBY', tx.key:job(group.job), 'droppedGroups', 1)
  redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now), group.job .. '/' .. group.groupId)
  group.state = 'dropped'
end

-- A live group that its round names and that is not there: nothing can become of it.
function Recovery.lose_live_group(tx, round, group_id)
  Counts.note_lost(tx, round.job, round.job .. '/' .. group_id)
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group_id)
  redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group_id)
  round.live = Rounds.bump(tx, round, 'liveGroups', -1)
  if Rounds.takes_results(round) then return Rounds.review_round(tx, round) end
  if round.cancelMode ~= 'drop' then Counts.add_settling(tx, round.job, -1) end
  if round.live == 0 then Rounds.mark_settled(tx, round) end
end

-- Puts a request in the place of one that is gone, so that its group is whole for every script, and ends the group.
function Recovery.lose_missing(tx, id, from, remove_entry)
  remove_entry()
  local job, group_id, index = string.match(id, '^([^/]+)/([^/]+)/(%d+)$')
  if not job then return end
  Counts.note_lost(tx, job, id)
  local state = booked_state(tx, job, from)
  Counts.add_requests(tx, job, state, -1)
  Counts.add_requests(tx, job, 'dropped', 1)
  local group = Rounds.load_group(tx, job, group_id)
  if not group or tonumber(index) >= group.launched then return end
  redis.call('HSET', tx.key:request(id), 'state', 'dropped', 'attempt', 0, 'failures', 0)
  group.live = Counts.add(tx, tx.key:group(job, group_id), job, 'live', -1)
  lose_group(tx, Rounds.load(tx, job, group.roundId), group)
end

-- The group and round of a request, or nil: then it was lost with them.
function Recovery.owners_of(tx, request)
  local group = Rounds.load_group(tx, request.job, request.groupId)
  if not group then
    Counts.note_lost(tx, request.job, request.id)
    lose_request(tx, request)
    return nil
  end
  local round = Rounds.load(tx, request.job, group.roundId)
  if not round and group.state ~= 'aborting' and group.state ~= 'dropped' then
    Counts.note_lost(tx, request.job, request.id)
    lose_group(tx, nil, group)
    return nil
  end
  return group, round
end

return Recovery

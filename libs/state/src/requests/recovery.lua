-- Groups and requests that an index names and that are not there: Redis came back without a part of its keys. What is
-- left of the group is failed or dropped and counted, so that everything else continues; the recount of the job mends
-- what cannot be known here.
local Recovery = {}

-- The state of a request that is not there, as far as indexes and counts tell. `live` and `finished`: how many of its
-- group are, of those that are known so far.
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

-- All requests of a group, in their order. In the place of each that is not there is put one that was dropped, and the
-- counters of the group follow from the others. Second result: true when one was gone.
function Recovery.requests_of(tx, group)
  local requests, missing, live, finished = {}, {}, 0, 0
  for index = 0, group.launched - 1 do
    local id = Requests.id_of(group.job, group.groupId, index)
    local request = Requests.load(tx, id)
    requests[index + 1] = request
    if not request then table.insert(missing, index)
    elseif Requests.LIVE[request.state] then live = live + 1
    elseif request.state == 'finished' then finished = finished + 1 end
  end
  if #missing == 0 then return requests, false end
  local live_now, finished_now = live, finished
  for _, index in ipairs(missing) do
    local id = Requests.id_of(group.job, group.groupId, index)
    Counts.note_lost(tx, group.job, id)
    local was = state_of_missing(tx, group, id, live, finished)
    if Requests.LIVE[was] then live = live + 1 elseif was == 'finished' then finished = finished + 1 end
    Counts.add_requests(tx, group.job, was, -1)
    Counts.add_requests(tx, group.job, 'dropped', 1)
    if Requests.HELD[was] and group.gated then
      Counts.add(tx, tx.key:round(group.job, group.roundId), group.job, 'inFlight', -1)
    end
    redis.call('HSET', tx.key:request(id), 'state', 'dropped', 'attempt', Requests.UNCLAIMED, 'failures', 0)
    requests[index + 1] = Requests.load(tx, id)
  end
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'live', live_now, 'finished', finished_now)
  group.live, group.finished = live_now, finished_now
  return requests, true
end

local LOST = { reason = 'lost' }

-- Drops what is left of a group that is in no round any more.
local function drop_rest(tx, group)
  LostGroups.note(tx, group, 'dropped', LOST)
  Longtail.leave(tx, group.job, group.groupId)
  redis.call('ZREM', tx.key.abortingGroups, group.job .. '/' .. group.groupId)
  redis.call('ZREM', tx.key.leavingGroups, group.job .. '/' .. group.groupId)
  for _, request in ipairs(Recovery.requests_of(tx, group)) do
    if request.state ~= 'dropped' then Requests.move(tx, request, group, 'dropped') end
  end
  redis.call('HSET', tx.key:group(group.job, group.groupId), 'state', 'dropped', 'dropReason', 'lost')
  redis.call('HINCRBY', tx.key:job(group.job), 'droppedGroups', 1)
  redis.call('ZADD', tx.key.droppedGroups, Format.integer(tx.now), group.job .. '/' .. group.groupId)
  group.state = 'dropped'
end

-- A group with a sample that is gone: it ends, unless it has all it needs without that one. What workers still have of
-- it is told to them by the sweep. `round` is that of the group, or nil.
function Recovery.lose_group(tx, round, group)
  if group.state == 'dropped' or group.state == 'failed' then return end
  if group.state == 'aborting' then return Aborts.review_dropped(tx, group) end
  if not round and group.state ~= 'unfinished' then return drop_rest(tx, group) end
  if Rounds.is_whole(group) then
    if round and group.live == 0 and Longtail.is_settling(round, group) then Longtail.settle_group(tx, round, group) end
    return
  end
  -- A closed round is trained as it was read.
  if group.state == 'accepted' and round.state == 'closed' then return end
  if group.state == 'accepted' then
    Rounds.leave_accepted(tx, round, group.groupId, group.samples)
    return drop_rest(tx, group)
  end
  if group.state == 'live' and Rounds.takes_results(round) then
    return Longtail.fail_group(tx, round, group, {}, LOST)
  end
  return Aborts.drop_group(tx, round, group, 'lost', nil, {})
end

-- A group that is gone may have been pinned, or might have taken a place of its domain: only the others still do.
local function mend_places(tx, round)
  if round.reserved == 0 and not round.hasQuotas then return end
  local pinned, waiting = 0, {}
  for _, group_id in ipairs(redis.call('ZRANGE', tx.key:roundGroups(round.job, round.roundId), 0, -1)) do
    local field = redis.call('HMGET', tx.key:group(round.job, group_id), 'state', 'pinned', 'held', 'domain')
    if field[2] == '1' then
      pinned = pinned + 1
    elseif field[1] and field[3] ~= '1' then
      table.insert(waiting, { domain = field[4] or nil })
    end
  end
  for _ = pinned + 1, round.reserved do Places.release_reserved(tx, round) end
  Places.recount_live(tx, round, waiting)
end

-- Requests of a group that is not there: those without a holder are deleted, those of a worker when the worker reports
-- them or is expired.
local function delete_rest(tx, job, group_id)
  Counts.note_lost(tx, job, job .. '/' .. group_id)
  LostGroups.note(tx, { job = job, groupId = group_id }, 'dropped', LOST)
  local group = { live = 0, finished = 0 }
  GroupDeletion.delete(tx, job, group_id, GroupDeletion.MOST_SAMPLES, nil, function(request)
    if Requests.HELD[request.state] then return true end
    Requests.move(tx, request, group, 'dropped')
  end)
end

-- Takes a live group that its round names and that is not there out of the round, which is to be reviewed after.
function Recovery.remove_live_group(tx, round, group_id)
  redis.call('ZREM', tx.key:roundGroups(round.job, round.roundId), group_id)
  redis.call('ZREM', tx.key:roundHeld(round.job, round.roundId), group_id)
  round.live = Rounds.bump(tx, round, 'liveGroups', -1)
  delete_rest(tx, round.job, group_id)
end

-- The same, and the round continues without it.
function Recovery.lose_live_group(tx, round, group_id)
  Recovery.remove_live_group(tx, round, group_id)
  mend_places(tx, round)
  Rounds.review_left(tx, round)
end

-- A group that is not there: the round that is open continues without it.
function Recovery.lose_missing_group(tx, job, group_id)
  local round = Rounds.load(tx, job, redis.call('HGET', tx.key:job(job), 'openRoundId') or '')
  if round and redis.call('ZSCORE', tx.key:roundGroups(job, round.roundId), group_id) then
    Recovery.lose_live_group(tx, round, group_id)
  else
    delete_rest(tx, job, group_id)
  end
end

-- Looks at a group that the long-tail queue names. True when it was lost just now: it, or a sample it needs.
function Recovery.lose_queued(tx, job, group_id)
  local group = Rounds.load_group(tx, job, group_id)
  if not group then
    Longtail.leave(tx, job, group_id)
    Recovery.lose_missing_group(tx, job, group_id)
    return true
  end
  local _, is_lost = Recovery.requests_of(tx, group)
  if not is_lost or Rounds.is_whole(group) then return false end
  Recovery.lose_group(tx, Rounds.load(tx, job, group.roundId), group)
  return true
end

-- An index names a request that is not there: the pending queue, or `held`, the index of what a worker has.
function Recovery.lose_missing(tx, id, held)
  if held then redis.call('SREM', held, id) end
  local job, group_id, index = string.match(id, '^([^/]+)/([^/]+)/(%d+)$')
  if not job then return end
  local group = Rounds.load_group(tx, job, group_id)
  if group and tonumber(index) < group.launched then
    local round = Rounds.load(tx, job, group.roundId)
    local _, is_lost = Recovery.requests_of(tx, group)
    if is_lost then Recovery.lose_group(tx, round, group) end
    return
  end
  local was_pending = redis.call('ZREM', tx.key:pending(job), id) == 1
  if not was_pending and not held then return end
  Counts.note_lost(tx, job, id)
  Counts.add_requests(tx, job, was_pending and 'pending' or 'running', -1)
  Counts.add_requests(tx, job, 'dropped', 1)
  if not group then Recovery.lose_missing_group(tx, job, group_id) end
end

-- The round of a group, or nil, and whether the group can continue: only groups in the queue or dropped need no round.
local NEEDS_NO_ROUND = { unfinished = true, aborting = true, dropped = true }
function Recovery.round_of(tx, group)
  local round = Rounds.load(tx, group.job, group.roundId)
  if round or NEEDS_NO_ROUND[group.state] then return round, true end
  Counts.note_lost(tx, group.job, group.job .. '/' .. group.groupId)
  drop_rest(tx, group)
  return nil, false
end

-- The group and round of a request, or nil: then it was lost with them.
function Recovery.owners_of(tx, request)
  local group = Rounds.load_group(tx, request.job, request.groupId)
  if not group then
    Requests.move(tx, request, { live = 0, finished = 0 }, 'dropped')
    redis.call('UNLINK', tx.key:request(request.id))
    Recovery.lose_missing_group(tx, request.job, request.groupId)
    return nil
  end
  local round, can_continue = Recovery.round_of(tx, group)
  if not can_continue then return nil end
  if not round and group.state == 'unfinished' and Requests.LIVE[request.state] then
    Counts.note_lost(tx, request.job, request.id)
    drop_rest(tx, group)
    return nil
  end
  return group, round
end

return Recovery

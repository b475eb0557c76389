-- Groups and requests that an index names and that are not there (requests/lost-records.lua): the rest of the group is
-- failed or dropped, so that everything else continues.
local Recovery = {}

-- Takes a live group that is not there out of the round that names it; the round continues without the group.
function Recovery.lose_live_group(tx, round, group_id)
  LostRecords.remove_live_group(tx, round, group_id)
  Places.mend(tx, round)
  Rounds.review_left(tx, round)
end

-- Ends a group that is not there: the open round continues without it.
function Recovery.lose_missing_group(tx, job, group_id)
  local round = Round.load(tx, job, Job.read_open_round(tx, job) or '')
  if round and redis.call('ZSCORE', tx.key:roundGroups(job, round.roundId), group_id) then
    Recovery.lose_live_group(tx, round, group_id)
  else
    LostRecords.delete_requests(tx, job, group_id)
  end
end

-- Checks a group that the long-tail queue names. True when the group ends now, because it or a sample it needs is lost.
function Recovery.lose_queued(tx, job, group_id)
  local group = Group.load(tx, job, group_id)
  if not group then
    LongtailQueue.remove(tx, job, group_id)
    Recovery.lose_missing_group(tx, job, group_id)
    return true
  end
  local _, is_lost = LostRecords.load_requests(tx, group)
  if not is_lost or Group.is_whole(group) then return false end
  GroupEnds.lose_group(tx, Round.load(tx, job, group.roundId), group)
  return true
end

-- Ends a request that is not there, although an index names it: the pending queue, or `held`, the index of a worker's
-- attempts.
function Recovery.lose_missing(tx, id, held)
  if held then redis.call('SREM', held, id) end
  local job, group_id, index = Request.parse_id(id)
  if not job then return end
  local group = Group.load(tx, job, group_id)
  if group and tonumber(index) < group.launched then
    local round = Round.load(tx, job, group.roundId)
    local _, is_lost = LostRecords.load_requests(tx, group)
    if is_lost then GroupEnds.lose_group(tx, round, group) end
    return
  end
  local was_pending = redis.call('ZREM', tx.key:pending(job), id) == 1
  if not was_pending and not held then return end
  Counts.note_lost(tx, job, id)
  Counts.add_requests(tx, job, was_pending and 'pending' or 'running', -1)
  Counts.add_requests(tx, job, 'dropped', 1)
  if not group then Recovery.lose_missing_group(tx, job, group_id) end
end

-- Loads the round of a group, once for all groups of a call that passes `known`.
local function load_round_once(tx, group, known)
  if not known then return Round.load(tx, group.job, group.roundId) end
  local name = Round.format_name(group)
  known.rounds = known.rounds or {}
  known.rounds[name] = known.rounds[name] or Round.load(tx, group.job, group.roundId)
  return known.rounds[name]
end

-- The round of a group, or nil, and whether the group can continue: only groups in the queue or dropped need no round.
local NEEDS_NO_ROUND = { unfinished = true, aborting = true, dropped = true }
function Recovery.load_round(tx, group, known)
  local round = load_round_once(tx, group, known)
  if round or NEEDS_NO_ROUND[group.state] then return round, true end
  Counts.note_lost(tx, group.job, Group.format_name(group))
  LostRecords.drop_rest(tx, group)
  return nil, false
end

-- The group and round of a request; nil when one of them was lost, and the request with it. `known`: see Attempts.load.
function Recovery.load_owners(tx, request, known)
  local group = Group.load(tx, request.job, request.groupId)
  if not group then
    LostRecords.drop_request(tx, request)
    Request.delete(tx, request.id)
    Recovery.lose_missing_group(tx, request.job, request.groupId)
    return nil
  end
  local round, can_continue = Recovery.load_round(tx, group, known)
  if not can_continue then return nil end
  if not round and group.state == 'unfinished' and Request.LIVE[request.state] then
    Counts.note_lost(tx, request.job, request.id)
    LostRecords.drop_rest(tx, group)
    return nil
  end
  return group, round
end

return Recovery

--[[ Selects one page of the requests and leases of an abort and starts to end them. Any replica may take the next page.
A page ends with the group that brings it to 64 requests, or with 512 leases read (2,048 if a text search skips most).
ARGV[1] JSON: {abortId}   string
Steps of the work: {kind: .., scope or absent}   scope: 'sample' | 'group', for requests; absent: as in their round
  requests   ids: by requestId; unknown ids leave tombstones for submits, with refuseAcquiresMs for acquires too, and
             are searched among the parked acquires and the leases
  group      job, groupId; an unknown group leaves a tombstone
  round      job, roundId: its groups that are neither accepted nor newer than the abort
  longtail   job: the long-tail queue
  job        job: its long-tail queue and its rounds
  jobs       all jobs
  attempts   workerId: requests that its live epoch has claimed
  waiters    workerId | sessionId | wanted | nothing = all: parked acquires; ofAbortedGroups: only of aborted groups
  leases     workerId | serverId | sessionId | nothing = all;
             known: leases of claimed requests are selected too, by their request
  requestLeases  wanted (requestId -> 0, 1 when found)
Reply: SelectPage
Events: group.dropped, request.aborted, round.completed, round.settled.
Flags: allow-oom ]]
local WAITERS_READ = 128
local LEASES_READ, LEASES_PASSED_OVER = 512, 2048 -- each is unpacked; a text search skips most

local function is_of_aborted_group(tx, _, waiter)
  local request = Request.load(tx, waiter.requestId)
  local state = request and Group.read_state(tx, request.job, request.groupId)
  return state == 'aborting' or state == 'dropped'
end

-- The leases of a session: a flat list of acquireId and packed lease. Reads the leases of the server of the session.
-- Nil when these are too many, or fewer than the binding counts: only a scan of all leases finds the rest.
local function leases_of_session(tx, session_id)
  local binding = Sessions.get(tx, session_id)
  if not binding then return {} end
  local set = tx.key:serverLeases(binding.serverId, binding.epoch)
  if redis.call('SCARD', set) > LEASES_READ then return nil end
  local ids, found = redis.call('SMEMBERS', set), {}
  local packed = #ids > 0 and redis.call('HMGET', tx.key.leases, unpack(ids)) or {}
  for position, id in ipairs(ids) do
    if packed[position] and LeaseRecord.may_name(packed[position], session_id)
      and LeaseRecord.unpack(packed[position]).sessionId == session_id then
      table.insert(found, id)
      table.insert(found, packed[position])
    end
  end
  return #found == 2 * binding.leases and found or nil
end

-- One page of the acquireIds of a request, and the cursor of the next page.
local function acquires_of(tx, id, cursor)
  local held = redis.call('HGET', tx.key.requestLeases, id)
  if held ~= RequestLeases.IN_SET then return RequestLeases.split(held or ''), '0' end
  local found = redis.call('SSCAN', tx.key:leasesOfRequest(id), cursor, 'COUNT', Selection.PAGE)
  return found[2], found[1]
end

-- A step does a part of the page, and returns true when all of the step is done. New steps follow the step that adds
-- them.
local steps = {}

function steps.requests(tx, page, step, work)
  for _, id in ipairs(Selection.ids(tx, page, step)) do
    Selection.bury(tx, step.scope and step.scope .. '|' .. id or id)
    if step.refuseAcquiresMs then Selection.bury_acquires(tx, id, step.refuseAcquiresMs) end
    step.unknown = step.unknown or {}
    step.unknown[id] = 0
  end
  if #step.ids > 0 then return false end
  if step.unknown then
    table.insert(work, 2, { kind = 'requestLeases', wanted = step.unknown })
    table.insert(work, 2, { kind = 'waiters', wanted = step.unknown })
  end
  return true
end

function steps.group(tx, page, step)
  local group = Group.load(tx, step.job, step.groupId)
  if not group then Selection.bury(tx, 'G|' .. step.job .. '/' .. step.groupId)
  elseif Group.may_be_aborted(group) then Selection.group(tx, page, group)
  else Aborts.record_group(tx, page.abortId, group) end
  return true
end

function steps.round(tx, page, step)
  local round = Round.load(tx, step.job, step.roundId)
  return not round or Selection.groups(tx, page, step, tx.key:roundGroups(step.job, step.roundId), round)
end

function steps.longtail(tx, page, step) return Selection.groups(tx, page, step, tx.key:longtail(step.job)) end

function steps.job(tx, _, step, work)
  for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(step.job), 0, -1)) do
    table.insert(work, 2, { kind = 'round', job = step.job, roundId = round_id })
  end
  table.insert(work, 2, { kind = 'longtail', job = step.job })
  return true
end

function steps.jobs(tx, _, _, work)
  for _, job in ipairs(redis.call('SMEMBERS', tx.key.jobs)) do table.insert(work, 2, { kind = 'job', job = job }) end
  return true
end

-- A step that scans page by page. The requestIds that one page has found are selected before the next page is read.
local function scanning(scan)
  return function(tx, page, step, work)
    step.ids = step.ids or {}
    Selection.ids(tx, page, step)
    if #step.ids > 0 or page.touched >= Selection.PAGE then return false end
    return step.cursor == '0' or scan(tx, page, step, work) == true
  end
end

steps.attempts = scanning(function(tx, _, step)
  step.epoch = step.epoch or redis.call('HGET', tx.key:worker(step.workerId), 'liveEpoch') or nil
  if not step.epoch then return true end
  local attempts = tx.key:workerAttempts(step.workerId, step.epoch)
  step.cursor, step.ids = unpack(redis.call('SSCAN', attempts, step.cursor or '0', 'COUNT', Selection.PAGE))
end)

steps.waiters = scanning(function(tx, page, step, work)
  if redis.call('EXISTS', tx.key.acquireWaiters) == 0 then return true end
  local cursor, found = unpack(redis.call('HSCAN', tx.key.acquireWaiters, step.cursor or '0', 'COUNT', WAITERS_READ))
  step.cursor = cursor
  local selects = step.ofAbortedGroups and is_of_aborted_group or Selection.matches
  local leases_step = step.wanted and work[2] and work[2].wanted and work[2]
  for position = 2, #found, 2 do
    local waiter = cjson.decode(found[position])
    if selects(tx, step, waiter) then
      Selection.waiter(tx, page, step, waiter)
      -- A request with a parked acquire is not unknown, even without a lease.
      if leases_step then leases_step.wanted[waiter.requestId] = 1 end
    end
  end
  page.touched = Selection.PAGE
end)

steps.leases = scanning(function(tx, page, step)
  local named = step.workerId or step.serverId or step.sessionId
  local cursor, found = '0', not step.cursor and step.sessionId and leases_of_session(tx, step.sessionId)
  if not found then
    cursor, found = unpack(redis.call('HSCAN', tx.key.leases, step.cursor or '0', 'COUNT',
      named and LEASES_PASSED_OVER or LEASES_READ))
  end
  step.cursor = cursor
  for position = 1, #found, 2 do
    local packed = found[position + 1]
    if not named or LeaseRecord.may_name(packed, named) then
      local lease = LeaseRecord.unpack(packed)
      if Selection.matches(tx, step, lease) then Selection.lease(tx, page, step, found[position], lease) end
    end
  end
  -- One scan of leases fills the page.
  page.touched = Selection.PAGE
end)

function steps.requestLeases(tx, page, step)
  local id = step.id or next(step.wanted)
  while id and page.touched < Selection.PAGE do
    local acquires, cursor = acquires_of(tx, id, step.cursor or '0')
    page.touched = page.touched + 1 + #acquires
    step.id, step.cursor = nil, nil
    for _, acquire_id in ipairs(acquires) do
      local packed = redis.call('HGET', tx.key.leases, acquire_id)
      local lease = packed and LeaseRecord.unpack(packed)
      if lease and Selection.matches(tx, step, lease) then Selection.lease(tx, page, step, acquire_id, lease) end
    end
    if cursor ~= '0' then
      step.id, step.cursor = id, cursor
    else
      if step.wanted[id] == 0 then Aborts.record(tx, page.abortId, 'N', id) end
      step.wanted[id] = nil
      id = next(step.wanted)
    end
  end
  return id == nil
end

return function(tx, args)
  local hash = tx.key:abort(args.abortId)
  local field = redis.call('HMGET', hash, 'work', 'upTo')
  local page = { abortId = args.abortId, upTo = tonumber(field[2] or 0), aborts = {}, leases = {}, answers = {},
    touched = 0 }
  local work = cjson.decode(field[1] or '[]')
  for _ = 1, Selection.PAGE do
    local step = work[1]
    if not step or page.touched >= Selection.PAGE then break end
    if steps[step.kind](tx, page, step, work) then table.remove(work, 1) end
  end
  if work[1] then
    redis.call('HSET', hash, 'work', cjson.encode(work))
  else
    redis.call('HDEL', hash, 'work')
    redis.call('ZREM', tx.key.aborts, args.abortId)
    redis.call('PEXPIRE', hash, Format.integer(GroupEnds.kept_ms(tx)))
    redis.call('PEXPIRE', tx.key:abortRows(args.abortId), Format.integer(GroupEnds.kept_ms(tx)))
  end
  return Reply.object({ more = work[1] ~= nil, aborts = page.aborts, leases = page.leases, answers = page.answers })
end

-- Reads of an audit; all reads of one item are of one moment. A read is a command of Redis, with its key named as in
-- library/keys.lua, or a view. A view is a stored record, for example of a server or group, with its entries in indexes
-- and counts. This module writes nothing and checks nothing.
local Views = {}

local MAX_LEASES = 500 -- leases of a server or worker that one view reads; more are read in pages
local MAX_RESIDENT = 2000 -- resident sessions of a server that one view reads
local PAGE = 256
local WORK = 600 -- entries read by one transition
function Tx.fields.entries_read() return 0 end
local function note(tx, entries) tx.entries_read = tx.entries_read + entries end

-- True when this transition has read enough, so that the rest is for the next call.
function Views.is_enough(tx) return tx.entries_read >= WORK end

-- `name`: the name of a key of the pool, or a list: the name of a kind of keys, and the variable parts of the key.
function Views.key_of(tx, name)
  if type(name) ~= 'table' then return tx.key[name] end
  return tx.key[name[1]](tx.key, unpack(name, 2))
end

local function has(set, member) return redis.call('SISMEMBER', set, member) == 1 end

local VIEWS = {}

function VIEWS.lease(tx, id)
  local packed = redis.call('HGET', tx.key.leases, id)
  if not packed then return false end
  note(tx, 8)
  local lease = LeaseRecord.unpack(packed)
  lease.packed = packed
  if not lease.seq then return lease end
  local server = 'server:' .. lease.serverId .. ':' .. lease.serverEpoch
  local worker = 'worker:' .. lease.workerId .. ':' .. lease.workerEpoch
  lease.onServer = has(tx.key:serverLeases(lease.serverId, lease.serverEpoch), id)
  lease.onWorker = has(tx.key:workerLeases(lease.workerId, lease.workerEpoch), id)
  lease.hasServer = Leases.is_on_current_epoch(tx, lease) or has(tx.key.expiredLeaseEpochs, server)
  lease.hasWorker = redis.call('HGET', tx.key:worker(lease.workerId), 'liveEpoch') == lease.workerEpoch
    or has(tx.key.expiredLeaseEpochs, worker)
  lease.hasSession = not lease.sessionId or redis.call('HEXISTS', tx.key.sessions, lease.sessionId) == 1
  local held = redis.call('HGET', tx.key.requestLeases, lease.requestId)
  lease.isListed = held == RequestLeases.IN_SET and has(tx.key:leasesOfRequest(lease.requestId), id)
    or held and string.find('|' .. held .. '|', '|' .. id .. '|', 1, true) ~= nil
  return lease
end

-- The list of leases of a request: whether it is a set, the named leases that are no leases of the request, and the
-- size of the set.
function VIEWS.request_list(tx, request_id)
  local held, set = redis.call('HGET', tx.key.requestLeases, request_id), tx.key:leasesOfRequest(request_id)
  local lost = {}
  local named = held == RequestLeases.IN_SET and redis.call('SMEMBERS', set) or RequestLeases.split(held or '')
  for _, id in ipairs(named) do
    note(tx, 1)
    local packed = redis.call('HGET', tx.key.leases, id)
    if not packed or LeaseRecord.request_of(packed) ~= request_id then table.insert(lost, id) end
  end
  return { isSet = held == RequestLeases.IN_SET, lost = lost, inSet = redis.call('SCARD', set) }
end

-- A server as transitions see it. `hasRoom` is absent in slow start, when the room grows with time and the index
-- follows later. `isScored`: the indexes follow the settings. A change of the settings or weights acts at once, and the
-- load-balancer scores every server later (servers/rescore).
function VIEWS.server(tx, id)
  tx.now = tonumber(redis.call('HGET', tx.key.meta, 'clockMs') or 0) -- indexes follow transitions, not time
  local server = Servers.get(tx, id)
  if not server then return false end
  local index_entries, is_indexed = ServerHash.index_entries_of(tx, id), true
  for _, index_entry in ipairs(index_entries) do
    is_indexed = is_indexed and has(tx.key:serversWith(index_entry), id)
  end
  note(tx, 10 + #index_entries)
  local has_fixed_place = tx.policy == LeastInflight and not tx.next_policy
  local score = redis.call('ZSCORE', tx.key.eligible, id)
  local view = {
    load = server.load, state = Servers.shown_state(tx, server), score = score,
    isUsable = Servers.is_usable(tx, server), isListedUsable = has(tx.key.usableServers, id),
    isRightPlace = not score or not has_fixed_place or tonumber(score) == Scores.place_of(tx, server, tx.policy),
    isScored = not tx.settings.syncing and tx.settings.version == tx.settings.scoredVersion,
    isIndexed = is_indexed and has(tx.key.serverVersionEntries, index_entries[1])
      and redis.call('HGET', tx.key.serverIndexEntries, id) == table.concat(index_entries, '\n'),
  }
  if not redis.call('ZSCORE', tx.key.warmingServers, id) then view.hasRoom = Servers.has_room(tx, server) end
  return view
end

-- The leases of these ids that belong to this server or worker epoch.
local function own_leases(tx, ids, kind, id, epoch)
  local leases = {}
  note(tx, #ids)
  for index, packed in ipairs(#ids > 0 and redis.call('HMGET', tx.key.leases, unpack(ids)) or {}) do
    local lease = packed and LeaseRecord.unpack(packed)
    if lease and lease[kind .. 'Id'] == id and lease[kind .. 'Epoch'] == epoch then
      lease.acquireId, lease.surplusTokens = ids[index], Loads.surplus_tokens(lease.contextTokens)
      table.insert(leases, lease)
    end
  end
  return leases
end

-- Leases in the set of a server or worker epoch that belong to this epoch; nil when the set is too large.
local function leases_of(tx, set, kind, id, epoch)
  if redis.call('SCARD', set) > MAX_LEASES then return nil end
  return own_leases(tx, redis.call('SMEMBERS', set), kind, id, epoch)
end

-- A page of the leases that leases_of returns; a lease that exists during the whole scan is in at least one page.
function VIEWS.leases(tx, kind, id, epoch, cursor)
  local page = redis.call('SSCAN', tx.key[kind .. 'Leases'](tx.key, id, epoch), cursor, 'COUNT', PAGE)
  return { cursor = page[1], leases = own_leases(tx, page[2], kind, id, epoch) }
end

-- A mark of an epoch. Equal marks mean that the epoch has the same leases. Equal marks of a server also mean that the
-- server got no lease and no session in between.
function VIEWS.mark(tx, kind, id, epoch)
  local load = redis.call('SCARD', tx.key[kind .. 'Leases'](tx.key, id, epoch))
  if kind == 'worker' then return { load, redis.call('HGET', tx.key:worker(id), 'leaseDigest') } end
  return { load, redis.call('HGET', tx.key.serverChosen, id),
    redis.call('HGET', tx.key.serverSessions, Loads.count_name(id, epoch)) }
end

-- The counts of a server by which policies order servers, as [right, stored]; false when it has too many leases.
-- `groups` and `sessions` have the given ids and the ids in the leases of the server; sessions that are not bound to
-- this epoch are left out.
function VIEWS.sums(tx, id, epoch, session_ids, group_ids)
  local leases = #session_ids <= MAX_LEASES and leases_of(tx, tx.key:serverLeases(id, epoch), 'server', id, epoch)
  if not leases then return false end
  note(tx, #session_ids + #group_ids)
  local name = Loads.count_name(id, epoch)
  local function stored(hash) return tonumber(redis.call('HGET', hash, name) or nil) or 0 end
  local tokens, of_sessions, sessions, groups = 0, 0, {}, {}
  for _, session_id in ipairs(session_ids) do sessions[session_id] = 0 end
  for _, group_id in ipairs(group_ids) do groups[group_id] = 0 end
  for _, lease in ipairs(leases) do
    tokens = tokens + lease.surplusTokens
    if lease.groupId then groups[lease.groupId] = (groups[lease.groupId] or 0) + 1 end
    if lease.sessionId then
      sessions[lease.sessionId] = (sessions[lease.sessionId] or 0) + 1
      of_sessions = of_sessions - 1
    end
  end
  for group_id, right in pairs(groups) do groups[group_id] = { right, stored(tx.key:groupLeases(group_id)) } end
  for session_id, right in pairs(sessions) do
    local binding = Sessions.get(tx, session_id)
    local is_bound = binding and binding.serverId == id and binding.epoch == epoch
    if is_bound then of_sessions = of_sessions + 1 end
    sessions[session_id] = is_bound and { right, binding.leases } or nil
  end
  return { tokens = { tokens, stored(tx.key.serverTokens) },
    ofSessions = { of_sessions, stored(tx.key.serverSessions) }, groups = groups, sessions = sessions }
end

function VIEWS.session(tx, id)
  local packed = redis.call('HGET', tx.key.sessions, id)
  local binding = packed and BindingRecord.unpack(packed)
  if not binding then return false end
  binding.packed, binding.isIdle = packed, redis.call('ZSCORE', tx.key.idleSessions, id) ~= false
  if binding.context then
    note(tx, 2)
    binding.isPaused = redis.call('ZSCORE', tx.key.pausedSessions, id) ~= false
    binding.isAway = redis.call('ZSCORE', tx.key:awaySessions(binding.serverId, binding.epoch), id) ~= false
  end
  return binding
end

-- What these sessions hold in the KV memory of a server epoch, and how many sessions of each family are resident there,
-- as [right, stored]. False for too many sessions.
function VIEWS.residency(tx, id, epoch, session_ids, family_ids)
  if #session_ids > MAX_RESIDENT then return false end
  note(tx, #session_ids + #family_ids)
  Sessions.read(tx, session_ids)
  local tokens, growth, families = 0, 0, {}
  for _, family in ipairs(family_ids) do families[family] = 0 end
  for _, session_id in ipairs(session_ids) do
    local binding = Sessions.get(tx, session_id)
    local is_here = binding and binding.serverId == id and binding.epoch == epoch
    if is_here and BindingRecord.is_resident(binding) then
      local count = families[binding.family] or 0
      tokens = tokens + Residency.own_tokens(binding) + (count == 0 and binding.shared or 0)
      growth, families[binding.family] = growth + binding.growth, count + 1
    end
  end
  local name = Loads.count_name(id, epoch)
  for family, right in pairs(families) do
    families[family] = { right, tonumber(redis.call('HGET', tx.key:sessionFamily(family), name) or nil) or 0 }
  end
  local stored = Residency.sums(tx, id, epoch)
  return { tokens = { tokens, stored.tokens }, growth = { growth, stored.growth }, families = families }
end

-- A live worker epoch; `sequences`: sequence numbers of its leases, absent when these are too many.
function VIEWS.worker(tx, id)
  local known = redis.call('HMGET', tx.key:worker(id), 'liveEpoch', 'leaseDigest')
  if not known[1] then return false end
  local set = tx.key:workerLeases(id, known[1])
  local leases, sequences = leases_of(tx, set, 'worker', id, known[1]), {}
  for _, lease in ipairs(leases or {}) do table.insert(sequences, lease.seq) end
  return { epoch = known[1], digest = known[2] or '0', load = redis.call('SCARD', set),
    sequences = leases and sequences or nil }
end

function VIEWS.waiter(tx, id)
  local waiter = Parked.get(tx, id)
  if not waiter then return false end
  return { lane = waiter.lane, score = waiter.score, stands = redis.call('ZSCORE', tx.key:serverLane(waiter.lane), id),
    hasDeadline = redis.call('ZSCORE', tx.key.acquireDeadlines, id) ~= false,
    hasLease = redis.call('HEXISTS', tx.key.leases, id) == 1 }
end

-- A group with its requests, in their order, and its place in the long-tail queue.
function VIEWS.group(tx, job, group_id)
  local place = redis.call('ZSCORE', tx.key:longtail(job), group_id)
  local group, requests = Group.load(tx, job, group_id), {}
  if not group then return { isQueued = place ~= false } end
  note(tx, 3 * group.launched)
  for index = 0, group.launched - 1 do
    local id = Request.format_id(job, group_id, index)
    local request = Request.load(tx, id)
    requests[index + 1] = request and {
      state = request.state, workerId = request.workerId, workerEpoch = request.workerEpoch,
      isLive = Request.LIVE[request.state] or false, wasClaimed = request.attempt ~= Request.UNCLAIMED,
      isQueued = redis.call('ZSCORE', tx.key:pending(job), id) ~= false,
      isWithWorker = not Request.HELD[request.state]
        or has(tx.key:workerAttempts(request.workerId, request.workerEpoch), id),
    } or false
  end
  return { isQueued = place ~= false, state = group.state, live = group.live, finished = group.finished,
    requests = requests, place = LongtailQueue.score(Group.read_past(tx, group)) }
end

-- A job with its rounds, the sizes of their lists, and how many of their groups are on the way to the long-tail queue.
function VIEWS.rounds(tx, job)
  local known = Job.load(tx, job)
  local view = { openRoundId = known.openRoundId or false, settling = known.settlingGroups,
    isRestoring = known.restoring ~= nil, rounds = {} }
  local leaving = {}
  for _, name in ipairs(redis.call('ZRANGE', tx.key.leavingGroups, 0, -1)) do
    local owner, group_id = Job.parse_name(name)
    local _, round_id = Group.read_state(tx, owner, group_id)
    if owner == job and round_id then leaving[round_id] = (leaving[round_id] or 0) + 1 end
  end
  for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(job), 0, -1)) do
    note(tx, 4)
    local round = Round.load(tx, job, round_id)
    if round then Round.read_rest(tx, round) end
    local accepted = redis.call('LLEN', tx.key:roundAccepted(job, round_id))
    table.insert(view.rounds, {
      roundId = round_id, state = round and round.state or 'gone', takesResults = round and Round.takes_results(round),
      live = round and round.liveGroups, accepted = round and round.acceptedGroups, isSettled = round and round.settled,
      isDropped = round and round.cancelMode == 'drop', leaving = round and round.leavingGroups or 0,
      isFolded = round ~= nil and round.folded,
      listedLive = redis.call('ZCARD', tx.key:roundGroups(job, round_id)), listedAccepted = accepted,
      listedLeaving = leaving[round_id] or 0, isSwept = has(tx.key.sweeps, job .. '/' .. round_id),
    })
  end
  return view
end

-- A page of the groups that a round lists as 'live' or 'accepted', as [groupId, state, roundId].
function VIEWS.round_groups(tx, job, round_id, list, from, to)
  local groups = list == 'live' and redis.call('ZRANGE', tx.key:roundGroups(job, round_id), from, to)
    or redis.call('LRANGE', tx.key:roundAccepted(job, round_id), from, to)
  note(tx, #groups)
  for index, id in ipairs(groups) do
    local state, owner = Group.read_state(tx, job, id)
    groups[index] = { id, state or false, owner or false }
  end
  return groups
end

-- The snapshots of a job, and which of the given numbers are lost: neither listed, nor being saved, nor to be deleted.
function VIEWS.snapshots(tx, job, numbers)
  local listed, known = {}, { [Job.load(tx, job).saving or ''] = true }
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:snapshots(job), 0, -1)) do
    local number = redis.call('ZSCORE', tx.key:snapshots(job), tag)
    local header = redis.call('HMGET', tx.key:snapshot(job, number), 'tag', 'groups', 'requests')
    known[number] = true
    table.insert(listed, { tag = tag, number = number, hasHeader = header[1] == tag, groups = tonumber(header[2] or 0),
      requests = tonumber(header[3] or 0), held = redis.call('HLEN', Snapshots.groups(tx, job, number)) })
  end
  local lost = {}
  for _, number in ipairs(numbers) do
    if not known[number] and not has(tx.key.oldSnapshots, job .. '/' .. number) then table.insert(lost, number) end
  end
  return { listed = listed, lost = lost }
end

-- One answer for each read; a read is a list that begins with the name of a view or of a command.
function Views.answers(tx, reads)
  local answers = {}
  for index, read in ipairs(reads) do
    note(tx, 1)
    local view = VIEWS[read[1]]
    if view then
      answers[index] = view(tx, unpack(read, 2))
    else
      answers[index] = redis.call(read[1], Views.key_of(tx, read[2]), unpack(read, 3))
    end
  end
  return answers
end

return Views

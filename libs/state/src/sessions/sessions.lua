-- The sessions of the pool: each is bound to one epoch of one server.
local Sessions = {}

local DEFAULT_MAX_SESSIONS = 200000

function Tx.fields.known_bindings() return {} end -- sessionId -> binding, or false

-- Reads the bindings of several sessions with one call; Sessions.get reads a single one.
function Sessions.read(tx, session_ids)
  if not session_ids[2] then return end
  local known, bindings = tx.known_bindings, {}
  for index, packed in ipairs(redis.call('HMGET', tx.key.sessions, unpack(session_ids))) do
    local id = session_ids[index]
    if known[id] == nil then known[id] = packed and BindingRecord.unpack(packed) end
    bindings[#bindings + 1] = known[id] or nil
  end
  if tx.admits_by_kv then Residency.read_sums(tx, bindings) end
end

function Sessions.get(tx, session_id)
  local binding = tx.known_bindings[session_id]
  if binding == nil then
    local packed = redis.call('HGET', tx.key.sessions, session_id)
    binding = packed and BindingRecord.unpack(packed)
    tx.known_bindings[session_id] = binding
  end
  return binding or nil
end

function Sessions.save(tx, session_id, binding)
  tx.known_bindings[session_id] = binding
  redis.call('HSET', tx.key.sessions, session_id, BindingRecord.pack(binding))
end

-- Changes the session count of a server's epoch: by 1 for one more session or one less lease of a session; see
-- routing/policies/least-sessions.lua.
function Sessions.count(tx, server_id, epoch, change)
  if epoch == BindingRecord.NO_EPOCH then return end
  Loads.change_count(tx.session_changes, server_id, epoch, change)
  if not Scores.go_by(tx, 'sessions') then return end
  local server = Servers.get(tx, server_id)
  if server and server.epoch == epoch then Servers.rescore_later(tx, server) end
end

function Sessions.forget(tx, session_id, binding)
  tx.known_bindings[session_id] = false
  redis.call('HDEL', tx.key.sessions, session_id)
  redis.call('ZREM', tx.key.idleSessions, session_id)
  Sessions.count(tx, binding.serverId, binding.epoch, -1)
  Residency.forget(tx, session_id, binding)
  EndedSessions.note(tx, session_id, binding)
end

-- Ends a session: it is forgotten now, or with its last lease.
function Sessions.finish(tx, session_id, binding)
  if binding.leases == 0 then return Sessions.forget(tx, session_id, binding) end
  binding.finished = true
  Sessions.save(tx, session_id, binding)
end

-- Forgets idle sessions. Returns how many of them existed.
function Sessions.evict(tx, session_ids)
  local evicted = 0
  for _, session_id in ipairs(session_ids) do
    local binding = Sessions.get(tx, session_id)
    if binding then
      Sessions.forget(tx, session_id, binding)
      evicted = evicted + 1
    else
      redis.call('ZREM', tx.key.idleSessions, session_id)
    end
  end
  if evicted > 0 then redis.call('HINCRBY', tx.key.meta, 'sessionsEvicted', evicted) end
  return evicted
end

-- How many sessions there are above the limit of the pool.
function Sessions.surplus(tx)
  return redis.call('HLEN', tx.key.sessions) - (Settings.number(tx, 'maxSessions') or DEFAULT_MAX_SESSIONS)
end

-- Adds the lease of an acquire to its session and binds it to this server. The rank stays while the session is on the
-- same server.
function Sessions.bind(tx, item, server)
  local session_id = item.sessionId
  local binding = Sessions.get(tx, session_id)
  if not binding and Sessions.surplus(tx) >= 0 then
    Sessions.evict(tx, redis.call('ZRANGE', tx.key.idleSessions, 0, 0))
  end
  local stays = binding and binding.serverId == server.id and binding.epoch == server.epoch
  if stays and tx.admits_by_kv and binding.context and BindingRecord.is_resident(binding) then
    Residency.go_on(tx, binding, item)
    binding.leases, binding.finished, binding.dpRank = binding.leases + 1, false, item.dpRank or binding.dpRank
    Sessions.save(tx, session_id, binding)
    redis.call('ZREM', tx.key.idleSessions, session_id)
    return
  end
  if not stays then
    if binding then
      Sessions.count(tx, binding.serverId, binding.epoch, -1)
      EndedSessions.note(tx, session_id, binding)
    end
    Sessions.count(tx, server.id, server.epoch, 1)
  end
  local bound = {
    serverId = server.id,
    epoch = server.epoch,
    leases = (binding and binding.leases or 0) + 1,
    finished = false,
    dpRank = item.dpRank or (stays and binding.dpRank or nil),
  }
  if tx.admits_by_kv or binding and binding.context then
    local parent = item.parentSessionId and Sessions.get(tx, item.parentSessionId)
    Residency.begin_call(tx, session_id, bound, binding, item, parent)
  end
  Sessions.save(tx, session_id, bound)
  redis.call('ZREM', tx.key.idleSessions, session_id)
end

-- Takes a lease, which has generated `tokens`, from its session.
function Sessions.unbind(tx, lease, tokens)
  local session_id = lease.sessionId
  local binding = Sessions.get(tx, session_id)
  if not binding then return end
  binding.leases = binding.leases - 1
  Residency.end_call(tx, session_id, binding, lease, tokens)
  if binding.leases <= 0 and binding.finished then
    Sessions.forget(tx, session_id, binding)
  else
    Sessions.save(tx, session_id, binding)
    if binding.leases <= 0 then redis.call('ZADD', tx.key.idleSessions, Format.integer(tx.now), session_id) end
  end
end

return Sessions

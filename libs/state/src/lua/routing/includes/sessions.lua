--- @include "../../includes/keys"
--- @include "servers"
--- @include "session-text"
local function binding_of(session_id)
  local packed = redis.call('HGET', key.sessions, session_id)
  return packed and unpack_binding(packed) or nil
end

local function save_binding(session_id, binding)
  redis.call('HSET', key.sessions, session_id, pack_binding(binding))
end

-- A session more on this epoch of a server, or a lease of a session less, is 1; see sessions_of.
local function count_session(server_id, epoch, change)
  if epoch == NO_EPOCH then return end
  change_count(session_changes, server_id, epoch, change)
  if policy_in_force() ~= 'least-sessions' and setting('nextPolicy') ~= 'least-sessions' then return end
  local server = server_of(server_id)
  if server and server.epoch == epoch then rescore_later(server) end
end

local function forget_session(session_id, binding)
  redis.call('HDEL', key.sessions, session_id)
  redis.call('ZREM', key.idleSessions, session_id)
  count_session(binding.serverId, binding.epoch, -1)
end

-- Returns how many of these idle sessions were there.
local function evict_sessions(session_ids)
  local evicted = 0
  for _, session_id in ipairs(session_ids) do
    local binding = binding_of(session_id)
    if binding then
      forget_session(session_id, binding)
      evicted = evicted + 1
    else
      redis.call('ZREM', key.idleSessions, session_id)
    end
  end
  if evicted > 0 then redis.call('HINCRBY', key.meta, 'sessionsEvicted', evicted) end
  return evicted
end

-- One more lease of the session, on this server from now on. Its rank stays while it is on the same server.
local function bind_session(session_id, server, most_sessions, dp_rank)
  local binding = binding_of(session_id)
  if not binding and redis.call('HLEN', key.sessions) >= (number_setting('maxSessions') or most_sessions) then
    evict_sessions(redis.call('ZRANGE', key.idleSessions, 0, 0))
  end
  local stays = binding and binding.serverId == server.id and binding.epoch == server.epoch
  if not stays then
    if binding then count_session(binding.serverId, binding.epoch, -1) end
    count_session(server.id, server.epoch, 1)
  end
  save_binding(session_id, {
    serverId = server.id,
    epoch = server.epoch,
    leases = (binding and binding.leases or 0) + 1,
    finished = false,
    dpRank = dp_rank or (stays and binding.dpRank or nil),
  })
  redis.call('ZREM', key.idleSessions, session_id)
end

-- One lease of the session less.
local function unbind_session(session_id, now)
  local binding = binding_of(session_id)
  if not binding then return end
  binding.leases = binding.leases - 1
  if binding.leases <= 0 and binding.finished then
    forget_session(session_id, binding)
  else
    save_binding(session_id, binding)
    if binding.leases <= 0 then redis.call('ZADD', key.idleSessions, string.format('%.0f', now), session_id) end
  end
end

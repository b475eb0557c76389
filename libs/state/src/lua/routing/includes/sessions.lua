--- @include "../../includes/keys"
-- A session is bound to one epoch of one server. Packed `serverId|epoch|leases|finished`; the leases are all of the
-- session, also those from before it was bound anew. Those without leases stand in the idle set by last use; only they
-- may be evicted.
local function binding_of(session_id)
  local packed = redis.call('HGET', key.sessions, session_id)
  if not packed then return nil end
  local server_id, epoch, leases, finished = string.match(packed, '^([^|]*)|(%d+)|(%d+)|(%d)$')
  return { serverId = server_id, epoch = tonumber(epoch), leases = tonumber(leases), finished = finished == '1' }
end

local function save_binding(session_id, binding)
  redis.call('HSET', key.sessions, session_id, string.format('%s|%.0f|%.0f|%s', binding.serverId, binding.epoch,
    binding.leases, binding.finished and '1' or '0'))
end

-- One more lease of the session, on this server from now on.
local function bind_session(session_id, server, most_sessions)
  local binding = binding_of(session_id)
  if not binding and redis.call('HLEN', key.sessions) >= most_sessions then
    local oldest = redis.call('ZPOPMIN', key.idleSessions)
    if oldest[1] then redis.call('HDEL', key.sessions, oldest[1]) end
  end
  local leases = binding and binding.leases or 0
  save_binding(session_id, { serverId = server.id, epoch = server.epoch, leases = leases + 1, finished = false })
  redis.call('ZREM', key.idleSessions, session_id)
end

-- One lease of the session less.
local function unbind_session(session_id, now)
  local binding = binding_of(session_id)
  if not binding then return end
  binding.leases = binding.leases - 1
  if binding.leases > 0 then
    save_binding(session_id, binding)
  elseif binding.finished then
    redis.call('HDEL', key.sessions, session_id)
  else
    save_binding(session_id, binding)
    redis.call('ZADD', key.idleSessions, string.format('%.0f', now), session_id)
  end
end

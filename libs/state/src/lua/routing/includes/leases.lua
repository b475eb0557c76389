--- @include "../../includes/keys"
--- @include "../../includes/worker-fence"
--- @include "servers"
--- @include "sessions"
-- Packed lease: seq|serverId|serverEpoch|workerId|workerEpoch|requestId|sessionId|groupId|grantedAtMs. No id holds a |.
local function pack_lease(lease)
  return string.format('%.0f|%s|%.0f|%s|%.0f|%s|%s|%s|%.0f', lease.seq, lease.serverId, lease.serverEpoch,
    lease.workerId, lease.workerEpoch, lease.requestId, lease.sessionId or '', lease.groupId or '', lease.grantedAtMs)
end

local function unpack_lease(packed)
  local seq, server_id, server_epoch, worker_id, worker_epoch, request_id, session_id, group_id, granted_at =
    string.match(packed, '^(%d+)|([^|]*)|(%d+)|([^|]*)|(%d+)|([^|]*)|([^|]*)|([^|]*)|(%d+)$')
  return {
    seq = tonumber(seq),
    serverId = server_id,
    serverEpoch = tonumber(server_epoch),
    workerId = worker_id,
    workerEpoch = tonumber(worker_epoch),
    requestId = request_id,
    sessionId = session_id ~= '' and session_id or nil,
    groupId = group_id ~= '' and group_id or nil,
    grantedAtMs = tonumber(granted_at),
  }
end

local known_fences = {}
local function is_current_worker(worker_id, worker_epoch)
  local name = worker_id .. '|' .. string.format('%.0f', worker_epoch)
  if known_fences[name] == nil then known_fences[name] = worker_is_current(worker_id, worker_epoch) end
  return known_fences[name]
end

local function is_on_current_epoch(lease)
  local server = server_of(lease.serverId)
  return server ~= nil and server.epoch == lease.serverEpoch
end

-- What many leases of one script move is written once, at its end, by `save_changes`: every script that grants or
-- returns leases must call it last.
local lease_sequence
local digest_changes, chosen_servers = {}, {}

local function save_changes()
  write_scores()
  if lease_sequence then redis.call('HSET', key.meta, 'leaseSequence', string.format('%.0f', lease_sequence)) end
  for worker_id, change in pairs(digest_changes) do
    redis.call('HINCRBY', key.worker(worker_id), 'leaseDigest', string.format('%.0f', change))
  end
  for id, server in pairs(chosen_servers) do redis.call('HSET', key.server(id), 'chosen', server.chosen) end
end

-- The lease sequence also orders the choices, so one counter serves both.
local function next_lease_sequence()
  lease_sequence = (lease_sequence or tonumber(redis.call('HGET', key.meta, 'leaseSequence')) or 0) + 1
  return lease_sequence
end

local function change_digest(worker_id, change)
  digest_changes[worker_id] = (digest_changes[worker_id] or 0) + change
end

local function grant_lease(item, server, now, most_sessions)
  local seq = next_lease_sequence()
  local lease = {
    seq = seq,
    serverId = server.id,
    serverEpoch = server.epoch,
    workerId = item.workerId,
    workerEpoch = item.workerEpoch,
    requestId = item.requestId,
    sessionId = item.sessionId,
    groupId = item.groupId,
    grantedAtMs = now,
  }
  redis.call('HSET', key.leases, item.acquireId, pack_lease(lease))
  redis.call('SADD', key.serverLeases(server.id, server.epoch), item.acquireId)
  redis.call('SADD', key.workerLeases(item.workerId, string.format('%.0f', item.workerEpoch)), item.acquireId)
  change_digest(item.workerId, seq)
  if item.sessionId then bind_session(item.sessionId, server, most_sessions) end
  server.load = server.load + 1
  server.chosen = seq % LOAD_UNIT
  chosen_servers[server.id] = server
  rescore_later(server)
  return lease
end

-- Takes the lease out of every index. The server's load falls only when the lease is of its current epoch.
local function return_lease(acquire_id, lease, now)
  local server = server_of(lease.serverId) -- before its set changes, since the load is read from that
  redis.call('HDEL', key.leases, acquire_id)
  redis.call('SREM', key.serverLeases(lease.serverId, lease.serverEpoch), acquire_id)
  redis.call('SREM', key.workerLeases(lease.workerId, string.format('%.0f', lease.workerEpoch)), acquire_id)
  if is_current_worker(lease.workerId, lease.workerEpoch) then change_digest(lease.workerId, -lease.seq) end
  if lease.sessionId then unbind_session(lease.sessionId, now) end
  if server and server.epoch == lease.serverEpoch then
    server.load = server.load - 1
    rescore_later(server)
  end
end

-- The answer of an acquire, with its server in `servers`.
local function lease_answer(lease, branch, servers)
  local server = server_of(lease.serverId)
  servers[server.id] = servers[server.id] or describe(server)
  return { seq = lease.seq, serverId = server.id, branch = branch, inflight = server.load }
end

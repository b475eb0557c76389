--- @include "../../includes/keys"
--- @include "../../includes/worker-fence"
--- @include "order"
--- @include "sessions"
--- @include "restrictions"
--- @include "decisions"
--- @include "lease-text"
local live_epochs = {} -- of workers, or false
local function is_current_worker(worker_id, worker_epoch)
  if live_epochs[worker_id] == nil then
    live_epochs[worker_id] = redis.call('HGET', key.worker(worker_id), 'liveEpoch')
  end
  return live_epochs[worker_id] == worker_epoch
end

local function is_on_current_epoch(lease)
  local server = server_of(lease.serverId)
  return server ~= nil and server.epoch == lease.serverEpoch
end

-- What many leases of one script move is written once, at its end, by `save_changes`: every script that grants or
-- returns leases must call it last.
local lease_sequence, known_sequence
local digest_changes, chosen_servers = {}, {}

local function save_changes()
  save_leases()
  write_scores()
  forget_order()
  save_counts()
  save_decisions()
  if lease_sequence then redis.call('HSET', key.meta, 'leaseSequence', string.format('%.0f', lease_sequence)) end
  for worker_id, change in pairs(digest_changes) do
    redis.call('HINCRBY', key.worker(worker_id), 'leaseDigest', string.format('%.0f', change))
  end
  local chosen = {}
  for id, server in pairs(chosen_servers) do
    chosen[#chosen + 1] = id
    chosen[#chosen + 1] = server.chosen
  end
  if #chosen > 0 then redis.call('HSET', key.serverChosen, unpack(chosen)) end
end

-- The lease sequence also orders the choices, so one counter serves both.
local function last_lease_sequence()
  known_sequence = known_sequence or tonumber(redis.call('HGET', key.meta, 'leaseSequence') or nil) or 0
  return known_sequence
end
local function next_lease_sequence()
  lease_sequence = last_lease_sequence() + 1
  known_sequence = lease_sequence
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
    contextTokens = item.contextTokens,
    asked = asked_text(item),
  }
  put_lease(item.acquireId, pack_lease(lease))
  put_member(key.serverLeases(server.id, server.epoch), item.acquireId, true)
  put_member(key.workerLeases(item.workerId, item.workerEpoch), item.acquireId, true)
  change_digest(item.workerId, seq)
  local surplus = surplus_tokens(item.contextTokens)
  if surplus > 0 then change_count(token_changes, server.id, server.epoch, surplus) end
  if item.sessionId then
    bind_session(item.sessionId, server, most_sessions, item.dpRank)
    count_session(server.id, server.epoch, -1)
  end
  if item.groupId then
    redis.call('HINCRBY', key.groupLeases(item.groupId), count_name(server.id, server.epoch), 1)
  end
  server.load = server.load + 1
  server.chosen = seq % LOAD_UNIT
  chosen_servers[server.id] = server
  if policy_in_force() == 'round-robin' then take_turn(server, pending_decision.reached) end
  moved_servers[server.id] = server
  move_back(server)
  local decision = pending_decision
  decision.reached = nil
  decision.inflight = server.load
  if item.lane then decision.branch, decision.via = 'waited', decision.branch end
  lease.decision = decision
  record_decision(lease, item.acquireId, decision)
  return lease
end

-- Takes the lease out of every index. The server's load falls only when the lease is of its current epoch.
local function return_lease(acquire_id, lease, now)
  local server = server_of(lease.serverId) -- before its set changes, since the load is read from that
  put_lease(acquire_id, false)
  put_member(key.serverLeases(lease.serverId, lease.serverEpoch), acquire_id, false)
  put_member(key.workerLeases(lease.workerId, lease.workerEpoch), acquire_id, false)
  if is_current_worker(lease.workerId, lease.workerEpoch) then change_digest(lease.workerId, -lease.seq) end
  local surplus = surplus_tokens(lease.contextTokens)
  if surplus > 0 then change_count(token_changes, lease.serverId, lease.serverEpoch, -surplus) end
  if lease.sessionId then
    unbind_session(lease.sessionId, now)
    count_session(lease.serverId, lease.serverEpoch, 1)
  end
  if lease.groupId then
    local group, name = key.groupLeases(lease.groupId), count_name(lease.serverId, lease.serverEpoch)
    if redis.call('HINCRBY', group, name, -1) <= 0 then redis.call('HDEL', group, name) end
  end
  if server and server.epoch == lease.serverEpoch then
    server.load = server.load - 1
    rescore_later(server)
  end
end

-- The answer of an acquire, with its server in `servers` and the receipt of the choice.
local function lease_answer(lease, branch, servers)
  local server = server_of(lease.serverId)
  servers[server.id] = servers[server.id] or describe(server)
  local answer = lease.decision or recorded_decision(lease)
    or { policy = policy_in_force(), policyVersion = number_setting('version') or 0 }
  if not lease.decision then answer.via = nil end
  answer.seq, answer.serverId, answer.branch, answer.inflight = lease.seq, server.id, branch, server.load
  local binding = lease.sessionId and binding_of(lease.sessionId)
  if binding and binding.serverId == server.id and binding.epoch == server.epoch then answer.dpRank = binding.dpRank end
  return answer
end

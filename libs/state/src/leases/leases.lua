local Leases = {}

function Tx.fields.live_epochs() return {} end -- of workers, or false
function Leases.is_current_worker(tx, worker_id, worker_epoch)
  if tx.live_epochs[worker_id] == nil then
    tx.live_epochs[worker_id] = redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch')
  end
  return tx.live_epochs[worker_id] == worker_epoch
end

function Leases.is_on_current_epoch(tx, lease)
  local server = Servers.get(tx, lease.serverId)
  return server ~= nil and server.epoch == lease.serverEpoch
end

-- What many leases of one script move is written once, at its end, by `save_changes`: every script that grants or
-- returns leases must call it last.
function Tx.fields.digest_changes() return {} end
function Tx.fields.chosen_servers() return {} end

function Leases.save(tx)
  LeaseTable.save(tx)
  Servers.write_scores(tx)
  Scores.forget_order(tx)
  Loads.save(tx)
  Decisions.save(tx)
  if tx.lease_sequence then redis.call('HSET', tx.key.meta, 'leaseSequence', Format.integer(tx.lease_sequence)) end
  for worker_id, change in pairs(tx.digest_changes) do
    redis.call('HINCRBY', tx.key:worker(worker_id), 'leaseDigest', Format.integer(change))
  end
  local chosen = {}
  for id, server in pairs(tx.chosen_servers) do
    chosen[#chosen + 1] = id
    chosen[#chosen + 1] = server.chosen
  end
  if #chosen > 0 then redis.call('HSET', tx.key.serverChosen, unpack(chosen)) end
end

-- The lease sequence also orders the choices, so one counter serves both.
function Leases.last_sequence(tx)
  tx.known_sequence = tx.known_sequence or tonumber(redis.call('HGET', tx.key.meta, 'leaseSequence') or nil) or 0
  return tx.known_sequence
end

function Leases.next_sequence(tx)
  tx.lease_sequence = Leases.last_sequence(tx) + 1
  tx.known_sequence = tx.lease_sequence
  return tx.lease_sequence
end

local function change_digest(tx, worker_id, change)
  tx.digest_changes[worker_id] = (tx.digest_changes[worker_id] or 0) + change
end

function Leases.grant(tx, item, server, now, most_sessions)
  local seq = Leases.next_sequence(tx)
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
    asked = Restrictions.asked_text(item),
  }
  LeaseTable.put(tx, item.acquireId, LeaseRecord.pack(lease))
  LeaseTable.put_member(tx, tx.key:serverLeases(server.id, server.epoch), item.acquireId, true)
  LeaseTable.put_member(tx, tx.key:workerLeases(item.workerId, item.workerEpoch), item.acquireId, true)
  change_digest(tx, item.workerId, seq)
  local surplus = Loads.surplus_tokens(item.contextTokens)
  if surplus > 0 then Loads.change_count(tx.token_changes, server.id, server.epoch, surplus) end
  if item.sessionId then
    Sessions.bind(tx, item.sessionId, server, most_sessions, item.dpRank)
    Sessions.count(tx, server.id, server.epoch, -1)
  end
  if item.groupId then
    redis.call('HINCRBY', tx.key:groupLeases(item.groupId), Loads.count_name(server.id, server.epoch), 1)
  end
  server.load = server.load + 1
  server.chosen = seq % Loads.LOAD_UNIT
  tx.chosen_servers[server.id] = server
  if Scores.policy(tx) == 'round-robin' then Scores.take_turn(tx, server, tx.pending_decision.reached) end
  tx.moved_servers[server.id] = server
  Order.move_back(tx, server)
  local decision = tx.pending_decision
  decision.reached = nil
  decision.inflight = server.load
  if item.lane then decision.branch, decision.via = 'waited', decision.branch end
  lease.decision = decision
  Decisions.record(tx, lease, item.acquireId, decision)
  return lease
end

-- Takes the lease out of every index. The server's load falls only when the lease is of its current epoch.
function Leases.give_back(tx, acquire_id, lease, now)
  local server = Servers.get(tx, lease.serverId) -- before its set changes, since the load is read from that
  LeaseTable.put(tx, acquire_id, false)
  LeaseTable.put_member(tx, tx.key:serverLeases(lease.serverId, lease.serverEpoch), acquire_id, false)
  LeaseTable.put_member(tx, tx.key:workerLeases(lease.workerId, lease.workerEpoch), acquire_id, false)
  if Leases.is_current_worker(tx, lease.workerId, lease.workerEpoch) then change_digest(tx, lease.workerId,
    -lease.seq) end
  local surplus = Loads.surplus_tokens(lease.contextTokens)
  if surplus > 0 then Loads.change_count(tx.token_changes, lease.serverId, lease.serverEpoch, -surplus) end
  if lease.sessionId then
    Sessions.unbind(tx, lease.sessionId, now)
    Sessions.count(tx, lease.serverId, lease.serverEpoch, 1)
  end
  if lease.groupId then
    local group, name = tx.key:groupLeases(lease.groupId), Loads.count_name(lease.serverId, lease.serverEpoch)
    if redis.call('HINCRBY', group, name, -1) <= 0 then redis.call('HDEL', group, name) end
  end
  if server and server.epoch == lease.serverEpoch then
    server.load = server.load - 1
    Servers.rescore_later(tx, server)
  end
end

-- The answer of an acquire, with its server in `servers` and the receipt of the choice.
function Leases.answer(tx, lease, branch, servers)
  local server = Servers.get(tx, lease.serverId)
  servers[server.id] = servers[server.id] or ServerHash.describe(server)
  local answer = lease.decision or Decisions.recorded(tx, lease)
    or { policy = Scores.policy(tx), policyVersion = Settings.number(tx, 'version') or 0 }
  if not lease.decision then answer.via = nil end
  answer.seq, answer.serverId, answer.branch, answer.inflight = lease.seq, server.id, branch, server.load
  local binding = lease.sessionId and Sessions.get(tx, lease.sessionId)
  if binding and binding.serverId == server.id and binding.epoch == server.epoch then answer.dpRank = binding.dpRank end
  return answer
end

return Leases

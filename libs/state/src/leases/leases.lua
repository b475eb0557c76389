-- Leases: granted, returned, answered. What many leases of one transition move is written once, at its end, by `save`:
-- every transition that grants or returns leases calls it last.
local Leases = {}

function Tx.fields.live_epochs() return {} end -- of workers, or false
function Leases.is_current_worker(tx, worker_id, worker_epoch)
  local epochs = tx.live_epochs
  local epoch = epochs[worker_id]
  if epoch == nil then
    epoch = redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch')
    epochs[worker_id] = epoch
  end
  return epoch == worker_epoch
end

function Leases.is_on_current_epoch(tx, lease)
  local server = Servers.get(tx, lease.serverId)
  return server ~= nil and server.epoch == lease.serverEpoch
end

function Tx.fields.digest_changes() return {} end -- workerId -> by how much
function Tx.fields.chosen_servers() return {} end -- serverId -> server

function Leases.save(tx)
  LeaseTable.save(tx)
  Servers.write_scores(tx)
  Scores.forget_order(tx)
  Loads.save(tx)
  Decisions.save(tx)
  if tx.is_sequence_moved then redis.call('HSET', tx.key.meta, 'leaseSequence', Format.integer(tx.sequence)) end
  for worker_id, change in pairs(rawget(tx, 'digest_changes') or {}) do
    redis.call('HINCRBY', tx.key:worker(worker_id), 'leaseDigest', Format.integer(change))
  end
  if not rawget(tx, 'chosen_servers') then return end
  local chosen = {}
  for id, server in pairs(tx.chosen_servers) do
    chosen[#chosen + 1] = id
    chosen[#chosen + 1] = server.chosen
  end
  redis.call('HSET', tx.key.serverChosen, unpack(chosen))
end

-- Of the last lease. It also orders the choices, so one counter serves both.
function Tx.fields.sequence(tx) return tonumber(redis.call('HGET', tx.key.meta, 'leaseSequence') or nil) or 0 end
function Tx.fields.is_sequence_moved() return false end
function Leases.next_sequence(tx)
  tx.sequence = tx.sequence + 1
  tx.is_sequence_moved = true
  return tx.sequence
end

-- The server was chosen last: it stands behind its equals.
function Leases.note_chosen(tx, server, seq)
  server.chosen = seq % Loads.LOAD_UNIT
  tx.chosen_servers[server.id] = server
end

local function change_digest(tx, worker_id, change)
  tx.digest_changes[worker_id] = (tx.digest_changes[worker_id] or 0) + change
end

-- Gives this server to who asks. `choice`: the receipt, as Choose.server makes it. Returns the line of the ring of
-- decisions.
function Leases.grant(tx, item, server, choice, most_sessions)
  local seq = Leases.next_sequence(tx)
  local seq_text = Format.integer(seq)
  local acquire_id = item.acquireId
  local packed = LeaseRecord.pack(seq_text, server, item, tx.now_text, Restrictions.asked_text(item))
  LeaseTable.put(tx, acquire_id, packed, item.requestId)
  LeaseTable.put_member(tx, server.leases_key, acquire_id, true)
  LeaseTable.put_member(tx, tx.key:workerLeases(item.workerId, item.workerEpoch), acquire_id, true)
  change_digest(tx, item.workerId, seq)
  local surplus = item.contextTokens and Loads.surplus_tokens(item.contextTokens) or 0
  if surplus > 0 then Loads.change_count(tx.token_changes, server.id, server.epoch, surplus) end
  if item.sessionId then
    Sessions.bind(tx, item.sessionId, server, most_sessions, item.dpRank)
    Sessions.count(tx, server.id, server.epoch, -1)
  end
  if item.groupId then
    redis.call('HINCRBY', tx.key:groupLeases(item.groupId), Loads.count_name(server.id, server.epoch), 1)
  end
  server.load = server.load + 1
  Leases.note_chosen(tx, server, seq)
  if tx.policy.on_grant then tx.policy.on_grant(tx, server, choice.reached) end
  tx.moved_servers[server.id] = server
  Order.move_back(tx, server)
  if item.lane then choice.branch, choice.via = 'waited', choice.branch end
  return Decisions.record(tx, seq_text, acquire_id, server.id, server.load, choice)
end

-- Takes the lease out of every index. The server's load falls only when the lease is of its current epoch.
function Leases.give_back(tx, acquire_id, lease, now)
  local server = Servers.get(tx, lease.serverId) -- before its set changes, since the load is read from that
  LeaseTable.remove(tx, acquire_id, lease.requestId)
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

-- The rank of a session on this server; nil when it has none.
function Leases.rank_of(tx, session_id, server)
  local binding = session_id and Sessions.get(tx, session_id)
  return binding and binding.serverId == server.id and binding.epoch == server.epoch and binding.dpRank or nil
end

-- Adds what a caller must know of the server, once.
function Leases.list_server(server, servers)
  if not servers[server.id] then servers[server.id] = ServerHash.describe(server) end
end

local function answer(tx, seq, server, decision, session_id, servers)
  Leases.list_server(server, servers)
  decision.seq, decision.serverId, decision.dpRank = seq, server.id, Leases.rank_of(tx, session_id, server)
  return decision
end

-- The answer of one that was granted just now; `line` as Leases.grant gives it. Its server comes into `servers`.
function Leases.granted(tx, item, server, line, choice, servers)
  local record = Decisions.read_line(line)
  record.decision.snapshot = choice.snapshot
  return answer(tx, record.seq, server, record.decision, item.sessionId, servers)
end

-- The answer of one that was granted before, with its receipt while that is in the ring.
function Leases.answer(tx, lease, branch, servers)
  local server = Servers.get(tx, lease.serverId)
  local decision = Decisions.recorded(tx, lease)
    or { policy = tx.policy_name, policyVersion = Settings.number(tx, 'version') or 0 }
  decision.via, decision.branch, decision.inflight = nil, branch, server.load
  return answer(tx, lease.seq, server, decision, lease.sessionId, servers)
end

return Leases

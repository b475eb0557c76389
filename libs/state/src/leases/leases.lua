-- Grants, returns and answers of leases. Most changes of one transition, such as new leases and sums over leases, are
-- collected and written at its end, by `save`.
local Leases = {}

function Tx.fields.holders() return {} end -- workerId -> holder as in Leases.holder, of the live epoch

-- A worker epoch that may hold leases: {key, epoch, leases_key, digest: change of the worker's leaseDigest in this
-- transition}; nil when the epoch is expired.
function Leases.holder(tx, worker_id, worker_epoch)
  local holder = tx.holders[worker_id]
  if not holder then
    local key = tx.key:worker(worker_id)
    local epoch = redis.call('HGET', key, 'liveEpoch')
    holder = { key = key, epoch = epoch, leases_key = epoch and tx.key:workerLeases(worker_id, epoch),
      digest = 0 }
    tx.holders[worker_id] = holder
  end
  return holder.epoch == worker_epoch and holder or nil
end

function Leases.is_current_worker(tx, worker_id, worker_epoch)
  return Leases.holder(tx, worker_id, worker_epoch) ~= nil
end

function Leases.is_on_current_epoch(tx, lease)
  local server = Servers.get(tx, lease.serverId)
  return server ~= nil and server.epoch == lease.serverEpoch
end

function Leases.save(tx)
  LeaseTable.save(tx)
  Servers.write_scores(tx)
  Scores.forget_order(tx)
  Loads.save(tx)
  Residency.save(tx)
  Decisions.save(tx)
  local sequence = rawget(tx, 'sequence_text')
  if sequence then redis.call('HSET', tx.key.meta, 'leaseSequence', sequence) end
  for _, holder in pairs(rawget(tx, 'holders') or {}) do
    if holder.digest ~= 0 then redis.call('HINCRBY', holder.key, 'leaseDigest', Format.integer(holder.digest)) end
  end
end

-- Counts one more lease of a server. The server was chosen last, so it follows all servers with the same score. Returns
-- the sequence of this choice, also as text.
local function note_chosen(tx, server)
  local seq = tx.sequence + 1
  local text, chosen = Format.integer(seq), seq % Loads.LOAD_UNIT
  tx.sequence, tx.sequence_text = seq, text
  server.load = server.load + 1
  server.chosen, server.chosen_text = chosen, chosen == seq and text or Format.integer(chosen)
  return seq, text
end

local function count_tokens(tx, server_id, epoch, context_tokens, times)
  local surplus = Loads.surplus_tokens(context_tokens)
  if surplus > 0 then Loads.change_count(tx.token_changes, server_id, epoch, surplus * times) end
end

-- Grants a lease on this server. `choice`: the receipt of Choose.server. Returns the line of the ring of decisions.
function Leases.grant(tx, item, server, choice)
  local seq, seq_text = note_chosen(tx, server)
  local acquire_id, holder = item.acquireId, tx.holders[item.workerId]
  local asked = choice.isRestricted and Restrictions.asked_text(item) or nil
  LeaseTable.add(tx, acquire_id, item.requestId, server, holder,
    LeaseRecord.pack(seq_text, server, item, tx.now_text, asked))
  holder.digest = holder.digest + seq
  if item.contextTokens then count_tokens(tx, server.id, server.epoch, item.contextTokens, 1) end
  if item.sessionId then
    Sessions.bind(tx, item, server)
    Sessions.count(tx, server.id, server.epoch, -1)
    Admission.relieve(tx, server)
  end
  if item.groupId then
    redis.call('HINCRBY', tx.key:groupLeases(item.groupId), Loads.count_name(server.id, server.epoch), 1)
  end
  if tx.policy.on_grant then tx.policy.on_grant(tx, server, choice.reached) end
  if server.trouble then Breaker.note_grant(tx, server) end
  Order.move_back(tx, server)
  if item.lane then choice.branch, choice.via = 'waited', choice.branch end
  return Decisions.record(tx, seq_text, acquire_id, server.id, server.load, choice)
end

-- Counts a live lease that is moved to this server. Returns the sequence of the choice, as text.
function Leases.move_to(tx, server)
  local _, seq_text = note_chosen(tx, server)
  if tx.policy.on_grant then tx.policy.on_grant(tx, server) end
  Servers.rescore_later(tx, server)
  return seq_text
end

-- Takes the lease out of every index. The server's load falls only when the lease is of its current epoch. `tokens`:
-- tokens that the call generated, if they are known.
function Leases.give_back(tx, acquire_id, lease, tokens)
  local server = Servers.get(tx, lease.serverId) -- read first: the load is the size of the set of leases
  local is_current = server and server.epoch == lease.serverEpoch
  local holder = Leases.holder(tx, lease.workerId, lease.workerEpoch)
  LeaseTable.remove(tx, acquire_id, lease,
    is_current and server.leases_key or tx.key:serverLeases(lease.serverId, lease.serverEpoch),
    holder and holder.leases_key or tx.key:workerLeases(lease.workerId, lease.workerEpoch))
  if holder then holder.digest = holder.digest - lease.seq end
  if lease.contextTokens then count_tokens(tx, lease.serverId, lease.serverEpoch, lease.contextTokens, -1) end
  if lease.sessionId then
    Sessions.unbind(tx, lease, tokens)
    Sessions.count(tx, lease.serverId, lease.serverEpoch, 1)
    if is_current then Admission.relieve(tx, server) end
  end
  if lease.groupId then
    local group, name = tx.key:groupLeases(lease.groupId), Loads.count_name(lease.serverId, lease.serverEpoch)
    if redis.call('HINCRBY', group, name, -1) <= 0 then redis.call('HDEL', group, name) end
  end
  if is_current then
    server.load = server.load - 1
    Servers.rescore_later(tx, server)
  end
end

-- The rank of a session on this server; nil when the session has none here.
function Leases.rank_of(tx, session_id, server)
  local binding = session_id and Sessions.get(tx, session_id)
  return binding and binding.serverId == server.id and binding.epoch == server.epoch and binding.dpRank or nil
end

local function answer(tx, seq, server, decision, session_id, servers)
  servers[server.id] = ServerWeights.describe(tx, server)
  decision.seq, decision.serverId, decision.dpRank = seq, server.id, Leases.rank_of(tx, session_id, server)
  return decision
end

-- The answer for a lease that was granted just now; `line`: the result of Leases.grant. The server of the
-- lease is added to `servers`.
function Leases.granted(tx, item, server, line, choice, servers)
  local record = Decisions.read_line(line)
  record.decision.snapshot = choice.snapshot
  return answer(tx, record.seq, server, record.decision, item.sessionId, servers)
end

-- The answer for a lease that was granted before, with its receipt while the ring has it.
function Leases.answer(tx, lease, branch, servers)
  local server = Servers.get(tx, lease.serverId)
  local decision = Decisions.recorded(tx, lease)
    or { policy = tx.policy_name, policyVersion = Settings.number(tx, 'version') or 0 }
  decision.via, decision.branch, decision.inflight = nil, branch, server.load
  return answer(tx, lease.seq, server, decision, lease.sessionId, servers)
end

return Leases

-- A lease goes on on another server: same id, same holder. Its session goes with it when it was bound to the server
-- that is left; one that was bound elsewhere meanwhile, or cleared, stays as it is.
local MoveLease = {}

local function move_session(tx, lease, from, target)
  Sessions.count(tx, from.id, from.epoch, 1)
  Sessions.count(tx, target.id, target.epoch, -1)
  local binding = Sessions.get(tx, lease.sessionId)
  if not binding or binding.serverId ~= from.id or binding.epoch ~= from.epoch then return end
  Sessions.count(tx, from.id, from.epoch, -1)
  Sessions.count(tx, target.id, target.epoch, 1)
  binding.serverId, binding.epoch, binding.dpRank = target.id, target.epoch, nil
  Sessions.save(tx, lease.sessionId, binding)
end

-- Takes a place in the sequence of choices, so that the target stands behind its equals; the lease keeps its own.
-- `decision` is the receipt, of which the place and the leases of the target are still missing.
function MoveLease.move(tx, acquire_id, lease, target, decision, now)
  local from = Servers.get(tx, lease.serverId)
  LeaseTable.put_member(tx, tx.key:serverLeases(from.id, from.epoch), acquire_id, false)
  LeaseTable.put_member(tx, tx.key:serverLeases(target.id, target.epoch), acquire_id, true)
  local surplus = Loads.surplus_tokens(lease.contextTokens)
  if surplus > 0 then
    Loads.change_count(tx.token_changes, from.id, from.epoch, -surplus)
    Loads.change_count(tx.token_changes, target.id, target.epoch, surplus)
  end
  if lease.sessionId then move_session(tx, lease, from, target) end
  if lease.groupId then
    local group, name = tx.key:groupLeases(lease.groupId), Loads.count_name(from.id, from.epoch)
    if redis.call('HINCRBY', group, name, -1) <= 0 then redis.call('HDEL', group, name) end
    redis.call('HINCRBY', group, Loads.count_name(target.id, target.epoch), 1)
  end
  local seq = Leases.next_sequence(tx)
  from.load, target.load = from.load - 1, target.load + 1
  target.chosen = seq % Loads.LOAD_UNIT
  tx.chosen_servers[target.id] = target
  if Scores.policy(tx) == 'round-robin' then Scores.take_turn(tx, target) end
  Servers.rescore_later(tx, from)
  Servers.rescore_later(tx, target)
  lease.serverId, lease.serverEpoch = target.id, target.epoch
  LeaseTable.put(tx, acquire_id, LeaseRecord.pack(lease))
  decision.inflight = target.load
  Decisions.record(tx, { seq = seq, grantedAtMs = now, serverId = target.id }, acquire_id, decision)
  lease.decision = decision
end

return MoveLease

-- Moves a lease to another server; the lease keeps its id and its holder. The session of the lease moves too if it is
-- bound to the old server; a session that was bound elsewhere meanwhile, or cleared, stays as it is.
local MoveLease = {}

local function move_session(tx, lease, from, target)
  Sessions.count(tx, from.id, from.epoch, 1)
  Sessions.count(tx, target.id, target.epoch, -1)
  local binding = Sessions.get(tx, lease.sessionId)
  if not binding or binding.serverId ~= from.id or binding.epoch ~= from.epoch then return end
  Sessions.count(tx, from.id, from.epoch, -1)
  Sessions.count(tx, target.id, target.epoch, 1)
  Residency.move(tx, lease.sessionId, binding, target)
  binding.dpRank = nil
  Sessions.save(tx, lease.sessionId, binding)
end

-- Takes a number of the sequence of choices, so that the target follows the servers with the same score; the lease
-- keeps its own number. `choice`: the receipt. Returns the line of the ring of decisions.
function MoveLease.move(tx, acquire_id, lease, target, choice)
  local from = Servers.get(tx, lease.serverId)
  redis.call('SREM', from.leases_key, acquire_id)
  redis.call('SADD', target.leases_key, acquire_id)
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
  from.load = from.load - 1
  Servers.rescore_later(tx, from)
  local seq_text = Leases.move_to(tx, target)
  lease.serverId, lease.serverEpoch = target.id, target.epoch
  local packed = LeaseRecord.pack(Format.integer(lease.seq), target, lease, Format.integer(lease.grantedAtMs),
    lease.asked)
  LeaseTable.update(tx, acquire_id, packed)
  return Decisions.record(tx, seq_text, acquire_id, target.id, target.load, choice)
end

return MoveLease

--- @include "leases"
-- A lease goes on on another server: same id, same holder. Its session goes with it when it was bound to the server that
-- is left; one that was bound elsewhere meanwhile, or cleared, stays as it is.
local function move_session(lease, from, target)
  count_session(from.id, from.epoch, 1)
  count_session(target.id, target.epoch, -1)
  local binding = binding_of(lease.sessionId)
  if not binding or binding.serverId ~= from.id or binding.epoch ~= from.epoch then return end
  count_session(from.id, from.epoch, -1)
  count_session(target.id, target.epoch, 1)
  binding.serverId, binding.epoch, binding.dpRank = target.id, target.epoch, nil
  save_binding(lease.sessionId, binding)
end

-- Takes a place in the sequence of choices, so that the target stands behind its equals; the lease keeps its own.
-- `decision` is the receipt, of which the place and the leases of the target are still missing.
local function move_lease(acquire_id, lease, target, decision, now)
  local from = server_of(lease.serverId)
  put_member(key.serverLeases(from.id, from.epoch), acquire_id, false)
  put_member(key.serverLeases(target.id, target.epoch), acquire_id, true)
  local surplus = surplus_tokens(lease.contextTokens)
  if surplus > 0 then
    change_count(token_changes, from.id, from.epoch, -surplus)
    change_count(token_changes, target.id, target.epoch, surplus)
  end
  if lease.sessionId then move_session(lease, from, target) end
  if lease.groupId then
    local group, name = key.groupLeases(lease.groupId), count_name(from.id, from.epoch)
    if redis.call('HINCRBY', group, name, -1) <= 0 then redis.call('HDEL', group, name) end
    redis.call('HINCRBY', group, count_name(target.id, target.epoch), 1)
  end
  local seq = next_lease_sequence()
  from.load, target.load = from.load - 1, target.load + 1
  target.chosen = seq % LOAD_UNIT
  chosen_servers[target.id] = target
  if policy_in_force() == 'round-robin' then take_turn(target) end
  rescore_later(from)
  rescore_later(target)
  lease.serverId, lease.serverEpoch = target.id, target.epoch
  put_lease(acquire_id, pack_lease(lease))
  decision.inflight = target.load
  record_decision({ seq = seq, grantedAtMs = now, serverId = target.id }, acquire_id, decision)
  lease.decision = decision
end

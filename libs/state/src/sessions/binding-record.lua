-- A session is bound to one epoch of one server. Packed `serverId|epoch|leases|finished|dpRank`; `leases` counts all
-- leases of the session, also leases from before the session was bound again. The idle set contains the sessions
-- without leases, by last use; only these may be evicted.
-- A session that is admitted by KV memory also has `|context|shared|growth|state|sinceMs|family|parent`:
--   context     tokens of the context of its last call, with the tokens which that call generated
--   shared      first tokens of the context, which the sessions of its family have in common
--   growth      tokens by which the context is expected to grow
--   state       r: resident, its context counts on its server; p: paused; w: paused, and its next turn waits
--   sinceMs     end of the last call; in state w, when the next turn began to wait
--   family      see Residency.name_family
--   parent      session that the first acquire named as its parent; may be empty
local BindingRecord = {}

BindingRecord.NO_EPOCH = '' -- the session was cleared and is bound again by its next lease
BindingRecord.RESIDENT = 'r'
BindingRecord.PAUSED = 'p'
BindingRecord.WAITING = 'w'

local KV = '^|(%d+)|(%d+)|(%d+)|(%a)|(%d+)|([^|]*)|(.*)$'

function BindingRecord.unpack(packed)
  local server_id, epoch, leases, finished, rank, kv_at = string.match(packed, '^([^|]*)|(%w*)|(%d+)|(%d)|?(%d*)()')
  if kv_at <= #packed then
    local context, shared, growth, state, since, family, parent = string.match(packed, KV, kv_at)
    return { serverId = server_id, epoch = epoch, leases = tonumber(leases), finished = finished == '1',
      dpRank = tonumber(rank), context = tonumber(context), shared = tonumber(shared), growth = tonumber(growth),
      state = state, sinceMs = tonumber(since), family = family, parent = parent }
  end
  return {
    serverId = server_id,
    epoch = epoch,
    leases = tonumber(leases),
    finished = finished == '1',
    dpRank = tonumber(rank),
  }
end

function BindingRecord.pack(binding)
  local finished, rank = binding.finished and '1' or '0', binding.dpRank or ''
  if not binding.context then
    return string.format('%s|%s|%.0f|%s|%s', binding.serverId, binding.epoch, binding.leases, finished, rank)
  end
  return string.format('%s|%s|%.0f|%s|%s|%.0f|%.0f|%.0f|%s|%.0f|%s|%s', binding.serverId, binding.epoch, binding.leases,
    finished, rank, binding.context, binding.shared, binding.growth, binding.state, binding.sinceMs, binding.family,
    binding.parent)
end

-- True while the context counts on the server of the binding.
function BindingRecord.is_resident(binding) return binding.state == BindingRecord.RESIDENT end

return BindingRecord

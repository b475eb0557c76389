-- A session is bound to one epoch of one server. Packed `serverId|epoch|leases|finished|dpRank`; `leases` counts all
-- leases of the session, also leases from before the session was bound again. The idle set contains the sessions
-- without leases, by last use; only these may be evicted.
local BindingRecord = {}

BindingRecord.NO_EPOCH = '' -- the session was cleared and is bound again by its next lease
function BindingRecord.unpack(packed)
  local server_id, epoch, leases, finished, rank = string.match(packed, '^([^|]*)|(%w*)|(%d+)|(%d)|?(%d*)$')
  return {
    serverId = server_id,
    epoch = epoch,
    leases = tonumber(leases),
    finished = finished == '1',
    dpRank = tonumber(rank),
  }
end

function BindingRecord.pack(binding)
  return string.format('%s|%s|%.0f|%s|%s', binding.serverId, binding.epoch, binding.leases,
    binding.finished and '1' or '0', binding.dpRank or '')
end

return BindingRecord

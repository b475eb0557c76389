-- Leases and the sets that index them, as this script sees them: read together, moved here, written together by
-- `save_leases`. One call of Redis for many entries costs a fraction of as many calls.
local LeaseTable = {}

function Tx.fields.known_leases() return {} end
function Tx.fields.changed_leases() return {} end -- acquireId -> packed, or false; acquireId -> true
function Tx.fields.changed_members() return {} end -- set -> acquireId -> whether it is in the set
function Tx.fields.lease_balance() return 0 end -- put less taken, not written yet

-- Reads those that are not known yet.
function LeaseTable.read(tx, acquire_ids)
  if #acquire_ids < 2 then return end
  local found = redis.call('HMGET', tx.key.leases, unpack(acquire_ids))
  for index, acquire_id in ipairs(acquire_ids) do tx.known_leases[acquire_id] = found[index] end
end

-- The packed lease, or false.
function LeaseTable.packed(tx, acquire_id)
  if tx.known_leases[acquire_id] == nil then
    tx.known_leases[acquire_id] = redis.call('HGET', tx.key.leases, acquire_id)
  end
  return tx.known_leases[acquire_id]
end

-- The sixth field of a packed lease, see lease-text.lua.
function LeaseTable.request_of(packed) return string.match(packed, '^%d+|[^|]*|%w+|[^|]*|%w+|([^|]*)') end

-- Puts a lease, or with false takes it away.
function LeaseTable.put(tx, acquire_id, packed)
  local before = LeaseTable.packed(tx, acquire_id)
  if packed and not before then
    tx.lease_balance = tx.lease_balance + 1
    RequestLeases.change(tx, LeaseTable.request_of(packed), acquire_id, true)
  elseif before and not packed then
    tx.lease_balance = tx.lease_balance - 1
    RequestLeases.change(tx, LeaseTable.request_of(before), acquire_id, false)
  end
  tx.known_leases[acquire_id] = packed
  tx.changed_leases[acquire_id] = true
end

function LeaseTable.put_member(tx, set, acquire_id, is_member)
  local members = tx.changed_members[set]
  if not members then
    members = {}
    tx.changed_members[set] = members
  end
  members[acquire_id] = is_member
end

function LeaseTable.size(tx)
  return redis.call('HLEN', tx.key.leases) + tx.lease_balance
end

function LeaseTable.save(tx)
  local put, taken = {}, {}
  for acquire_id in pairs(tx.changed_leases) do
    local packed = tx.known_leases[acquire_id]
    if packed then
      put[#put + 1] = acquire_id
      put[#put + 1] = packed
    else
      taken[#taken + 1] = acquire_id
    end
  end
  if #put > 0 then redis.call('HSET', tx.key.leases, unpack(put)) end
  if #taken > 0 then redis.call('HDEL', tx.key.leases, unpack(taken)) end
  RequestLeases.save(tx)
  for set, members in pairs(tx.changed_members) do
    local added, removed = {}, {}
    for acquire_id, is_member in pairs(members) do
      local list = is_member and added or removed
      list[#list + 1] = acquire_id
    end
    if #added > 0 then redis.call('SADD', set, unpack(added)) end
    if #removed > 0 then redis.call('SREM', set, unpack(removed)) end
  end
  tx.changed_leases, tx.changed_members, tx.lease_balance = {}, {}, 0
end

return LeaseTable

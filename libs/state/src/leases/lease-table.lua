-- Leases and the sets that index them, as this transition sees them: read together, moved here, written together by
-- `save`. One call of Redis for many entries costs a fraction of as many calls.
local LeaseTable = {}

function Tx.fields.known_leases() return {} end -- acquireId -> packed, or false
function Tx.fields.changed_leases() return {} end -- acquireId -> true
function Tx.fields.changed_members() return {} end -- set -> acquireId -> whether it is in the set
function Tx.fields.lease_balance() return 0 end -- put less taken, not written yet

-- Reads those that are not known yet.
function LeaseTable.read(tx, acquire_ids)
  if #acquire_ids < 2 then return end
  local known = tx.known_leases
  for index, packed in ipairs(redis.call('HMGET', tx.key.leases, unpack(acquire_ids))) do
    known[acquire_ids[index]] = packed
  end
end

-- The packed lease, or false.
function LeaseTable.packed(tx, acquire_id)
  local packed = tx.known_leases[acquire_id]
  if packed == nil then
    packed = redis.call('HGET', tx.key.leases, acquire_id)
    tx.known_leases[acquire_id] = packed
  end
  return packed
end

function LeaseTable.put(tx, acquire_id, packed, request_id)
  if not LeaseTable.packed(tx, acquire_id) then
    tx.lease_balance = tx.lease_balance + 1
    RequestLeases.change(tx, request_id, acquire_id, true)
  end
  tx.known_leases[acquire_id] = packed
  tx.changed_leases[acquire_id] = true
end

function LeaseTable.remove(tx, acquire_id, request_id)
  if LeaseTable.packed(tx, acquire_id) then
    tx.lease_balance = tx.lease_balance - 1
    RequestLeases.change(tx, request_id, acquire_id, false)
  end
  tx.known_leases[acquire_id] = false
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

-- Leases of the pool.
function LeaseTable.size(tx) return redis.call('HLEN', tx.key.leases) + tx.lease_balance end

local function save_members(tx)
  for set, members in pairs(tx.changed_members) do
    local added, removed = {}, {}
    for acquire_id, is_member in pairs(members) do
      local list = is_member and added or removed
      list[#list + 1] = acquire_id
    end
    if added[1] then redis.call('SADD', set, unpack(added)) end
    if removed[1] then redis.call('SREM', set, unpack(removed)) end
  end
end

function LeaseTable.save(tx)
  if not rawget(tx, 'changed_members') then return end
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
  Hashes.write(tx.key.leases, put, taken)
  RequestLeases.save(tx)
  save_members(tx)
  tx.changed_leases, tx.changed_members, tx.lease_balance = nil, nil, nil
end

return LeaseTable

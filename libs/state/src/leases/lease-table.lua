-- The leases of the pool, with the sets that index them by server, worker and request.
local LeaseTable = {}

function Tx.fields.known_leases() return {} end -- acquireId -> packed, or false

function LeaseTable.read(tx, acquire_ids)
  local known = tx.known_leases
  for index, packed in ipairs(redis.call('HMGET', tx.key.leases, unpack(acquire_ids))) do
    known[acquire_ids[index]] = packed
  end
end

function LeaseTable.packed(tx, acquire_id)
  local packed = tx.known_leases[acquire_id]
  if packed == nil then
    packed = redis.call('HGET', tx.key.leases, acquire_id)
    tx.known_leases[acquire_id] = packed
  end
  return packed
end

-- The lease that a leaseId names, while it lives, or nil.
function LeaseTable.named(tx, lease_id)
  local seq, acquire_id = string.match(lease_id, '^(%d+)%.(.+)$')
  local packed = acquire_id and LeaseTable.packed(tx, acquire_id)
  local lease = packed and LeaseRecord.unpack(packed)
  return lease and lease.seq == tonumber(seq) and lease or nil
end

-- A leaseId with the request and holder of its lease, for a command to the holder.
function LeaseTable.fence(lease_id, lease)
  return { leaseId = lease_id, requestId = lease.requestId, workerId = lease.workerId, workerEpoch = lease.workerEpoch }
end

-- Writes a lease again after a change of its packed text.
function LeaseTable.update(tx, acquire_id, packed)
  tx.known_leases[acquire_id] = packed
  redis.call('HSET', tx.key.leases, acquire_id, packed)
end

-- Changes that take one call of Redis for many leases are written by `save`: returned leases first, then granted
-- leases.
function Tx.fields.new_leases() return {} end -- acquireId, packed, acquireId, packed, ...
function Tx.fields.gone_leases() return {} end -- acquireIds
-- Sets of acquireIds, by server and by worker: key -> acquireIds that are to be added, or removed.
function Tx.fields.joining() return {} end
function Tx.fields.leaving() return {} end

local function note(sets, key, acquire_id)
  local ids = sets[key]
  if ids then ids[#ids + 1] = acquire_id else sets[key] = { acquire_id } end
end

function LeaseTable.add(tx, acquire_id, request_id, server, holder, packed)
  tx.known_leases[acquire_id] = packed
  local new = tx.new_leases
  local count = #new
  new[count + 1], new[count + 2] = acquire_id, packed
  RequestLeases.add(tx, request_id, acquire_id)
  note(tx.joining, server.leases_key, acquire_id)
  note(tx.joining, holder.leases_key, acquire_id)
end

function LeaseTable.remove(tx, acquire_id, lease, server_leases, worker_leases)
  if rawget(tx, 'new_leases') then LeaseTable.save(tx) end
  if LeaseTable.packed(tx, acquire_id) then
    tx.known_leases[acquire_id] = false
    tx.gone_leases[#tx.gone_leases + 1] = acquire_id
    RequestLeases.remove(tx, lease.requestId, acquire_id)
  end
  note(tx.leaving, server_leases, acquire_id)
  note(tx.leaving, worker_leases, acquire_id)
end

function LeaseTable.save(tx)
  local gone, new = rawget(tx, 'gone_leases'), rawget(tx, 'new_leases')
  if gone then redis.call('HDEL', tx.key.leases, unpack(gone)) end
  if new then redis.call('HSET', tx.key.leases, unpack(new)) end
  for key, ids in pairs(rawget(tx, 'leaving') or {}) do redis.call('SREM', key, unpack(ids)) end
  for key, ids in pairs(rawget(tx, 'joining') or {}) do redis.call('SADD', key, unpack(ids)) end
  RequestLeases.save(tx)
  tx.gone_leases, tx.new_leases, tx.leaving, tx.joining = nil, nil, nil, nil
end

function LeaseTable.size(tx)
  return redis.call('HLEN', tx.key.leases) - #(rawget(tx, 'gone_leases') or {})
    + #(rawget(tx, 'new_leases') or {}) / 2
end

return LeaseTable

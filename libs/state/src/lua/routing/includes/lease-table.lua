--- @include "../../includes/keys"
--- @include "request-leases"
-- Leases and the sets that index them, as this script sees them: read together, moved here, written together by
-- `save_leases`. One call of Redis for many entries costs a fraction of as many calls.
local known_leases, changed_leases = {}, {} -- acquireId -> packed, or false; acquireId -> true
local changed_members = {} -- set -> acquireId -> whether it is in the set
local lease_balance = 0 -- put less taken, not written yet

-- Reads those that are not known yet.
local function read_leases(acquire_ids)
  if #acquire_ids < 2 then return end
  local found = redis.call('HMGET', key.leases, unpack(acquire_ids))
  for index, acquire_id in ipairs(acquire_ids) do known_leases[acquire_id] = found[index] end
end

-- The packed lease, or false.
local function packed_lease(acquire_id)
  if known_leases[acquire_id] == nil then
    known_leases[acquire_id] = redis.call('HGET', key.leases, acquire_id)
  end
  return known_leases[acquire_id]
end

-- The sixth field of a packed lease, see lease-text.lua.
local function request_of(packed) return string.match(packed, '^%d+|[^|]*|%w+|[^|]*|%w+|([^|]*)') end

-- Puts a lease, or with false takes it away.
local function put_lease(acquire_id, packed)
  local before = packed_lease(acquire_id)
  if packed and not before then
    lease_balance = lease_balance + 1
    change_request_leases(request_of(packed), acquire_id, true)
  elseif before and not packed then
    lease_balance = lease_balance - 1
    change_request_leases(request_of(before), acquire_id, false)
  end
  known_leases[acquire_id] = packed
  changed_leases[acquire_id] = true
end

local function put_member(set, acquire_id, is_member)
  local members = changed_members[set]
  if not members then
    members = {}
    changed_members[set] = members
  end
  members[acquire_id] = is_member
end

local function live_leases()
  return redis.call('HLEN', key.leases) + lease_balance
end

local function save_leases()
  local put, taken = {}, {}
  for acquire_id in pairs(changed_leases) do
    local packed = known_leases[acquire_id]
    if packed then
      put[#put + 1] = acquire_id
      put[#put + 1] = packed
    else
      taken[#taken + 1] = acquire_id
    end
  end
  if #put > 0 then redis.call('HSET', key.leases, unpack(put)) end
  if #taken > 0 then redis.call('HDEL', key.leases, unpack(taken)) end
  save_request_leases()
  for set, members in pairs(changed_members) do
    local added, removed = {}, {}
    for acquire_id, is_member in pairs(members) do
      local list = is_member and added or removed
      list[#list + 1] = acquire_id
    end
    if #added > 0 then redis.call('SADD', set, unpack(added)) end
    if #removed > 0 then redis.call('SREM', set, unpack(removed)) end
  end
  changed_leases, changed_members, lease_balance = {}, {}, 0
end

--- @include "../../includes/keys"
-- The leases of each request, so that an abort need not look at all leases. What a script changes is written once, by
-- `save_request_leases`, in the order it was told.
local changed_requests, changed_acquires, is_taken = {}, {}, {}

local function change_request_leases(request_id, acquire_id, is_granted)
  local position = #changed_requests + 1
  changed_requests[position], changed_acquires[position], is_taken[position] = request_id, acquire_id, not is_granted
end

local function without_acquire(acquire_ids, acquire_id)
  local left = {}
  for id in string.gmatch(acquire_ids, '[^|]+') do
    if id ~= acquire_id then left[#left + 1] = id end
  end
  return #left > 0 and table.concat(left, '|')
end

local function save_request_leases()
  if #changed_requests == 0 then return end
  local before = redis.call('HMGET', key.requestLeases, unpack(changed_requests))
  local now_held = {}
  for position, request_id in ipairs(changed_requests) do
    local held, acquire_id = now_held[request_id], changed_acquires[position]
    if held == nil then held = before[position] end
    if not is_taken[position] then
      held = held and held .. '|' .. acquire_id or acquire_id
    elseif held then
      held = held ~= acquire_id and without_acquire(held, acquire_id)
    end
    now_held[request_id] = held
  end
  local kept, gone = {}, {}
  for request_id, held in pairs(now_held) do
    if held then
      kept[#kept + 1] = request_id
      kept[#kept + 1] = held
    else
      gone[#gone + 1] = request_id
    end
  end
  if #kept > 0 then redis.call('HSET', key.requestLeases, unpack(kept)) end
  if #gone > 0 then redis.call('HDEL', key.requestLeases, unpack(gone)) end
  changed_requests, changed_acquires, is_taken = {}, {}, {}
end

--- @include "../../includes/keys"
-- The leases of each request, so that an abort need not look at all leases: a text with their acquireIds, since almost
-- all have one or two; beyond LONGEST bytes a set, and the text is IN_SET. What a script changes is written once, by
-- `save_request_leases`, in the order it was told.
local IN_SET = '*'

local function split_acquires(acquire_ids)
  local ids = {}
  for id in string.gmatch(acquire_ids, '[^|]+') do ids[#ids + 1] = id end
  return ids
end

local change_request_leases, save_request_leases
do
  local LONGEST = 256
  local changed_requests, changed_acquires, is_taken = {}, {}, {}

  function change_request_leases(request_id, acquire_id, is_granted)
    local position = #changed_requests + 1
    changed_requests[position], changed_acquires[position], is_taken[position] = request_id, acquire_id, not is_granted
  end

  -- The text with this acquireId, or when it is taken without; false for none left.
  local function changed_text(request_id, held, acquire_id, is_taken_away)
    local set = key.leasesOfRequest(request_id)
    if held == IN_SET then
      redis.call(is_taken_away and 'SREM' or 'SADD', set, acquire_id)
      return redis.call('EXISTS', set) == 1 and IN_SET
    end
    if not is_taken_away then
      local text = held and held .. '|' .. acquire_id or acquire_id
      if #text <= LONGEST then return text end
      redis.call('SADD', set, unpack(split_acquires(text)))
      return IN_SET
    end
    if not held or held == acquire_id then return false end
    local left = {}
    for _, id in ipairs(split_acquires(held)) do
      if id ~= acquire_id then left[#left + 1] = id end
    end
    return #left > 0 and table.concat(left, '|')
  end

  function save_request_leases()
    if #changed_requests == 0 then return end
    local before = redis.call('HMGET', key.requestLeases, unpack(changed_requests))
    local now_held = {}
    for position, request_id in ipairs(changed_requests) do
      local held = now_held[request_id]
      if held == nil then held = before[position] end
      if held or is_taken[position] then
        held = changed_text(request_id, held, changed_acquires[position], is_taken[position])
      else
        held = changed_acquires[position]
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
end

-- The leases of each request, so that an abort need not look at all leases: a text with their acquireIds, since almost
-- all have one or two; beyond LONGEST bytes a set, and the text is IN_SET. What a script changes is written once, by
-- `save_request_leases`, in the order it was told.
local RequestLeases = {}

RequestLeases.IN_SET = '*'

function RequestLeases.split(acquire_ids)
  local ids = {}
  for id in string.gmatch(acquire_ids, '[^|]+') do ids[#ids + 1] = id end
  return ids
end

local LONGEST = 256
function Tx.fields.changed_requests() return {} end
function Tx.fields.changed_acquires() return {} end
function Tx.fields.is_taken() return {} end

function RequestLeases.change(tx, request_id, acquire_id, is_granted)
  local position = #tx.changed_requests + 1
  tx.changed_requests[position], tx.changed_acquires[position], tx.is_taken[position] = request_id, acquire_id,
    not is_granted
end

-- The text with this acquireId, or when it is taken without; false for none left.
local function changed_text(tx, request_id, held, acquire_id, is_taken_away)
  local set = tx.key:leasesOfRequest(request_id)
  if held == RequestLeases.IN_SET then
    redis.call(is_taken_away and 'SREM' or 'SADD', set, acquire_id)
    return redis.call('EXISTS', set) == 1 and RequestLeases.IN_SET
  end
  if not is_taken_away then
    local text = held and held .. '|' .. acquire_id or acquire_id
    if #text <= LONGEST then return text end
    redis.call('SADD', set, unpack(RequestLeases.split(text)))
    return RequestLeases.IN_SET
  end
  if not held or held == acquire_id then return false end
  local left = {}
  for _, id in ipairs(RequestLeases.split(held)) do
    if id ~= acquire_id then left[#left + 1] = id end
  end
  return #left > 0 and table.concat(left, '|')
end

function RequestLeases.save(tx)
  if #tx.changed_requests == 0 then return end
  local before = redis.call('HMGET', tx.key.requestLeases, unpack(tx.changed_requests))
  local now_held = {}
  for position, request_id in ipairs(tx.changed_requests) do
    local held = now_held[request_id]
    if held == nil then held = before[position] end
    if held or tx.is_taken[position] then
      held = changed_text(tx, request_id, held, tx.changed_acquires[position], tx.is_taken[position])
    else
      held = tx.changed_acquires[position]
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
  Hashes.write(tx.key.requestLeases, kept, gone)
  tx.changed_requests, tx.changed_acquires, tx.is_taken = {}, {}, {}
end

return RequestLeases

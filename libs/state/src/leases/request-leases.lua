-- The leases of each request, so that an abort need not read all leases. Almost all requests have one or two leases, so
-- a text has the acquireIds; beyond LONGEST bytes a set has them, and the text is IN_SET. Texts that were read together
-- are written together, by `save`.
local RequestLeases = {}

RequestLeases.IN_SET = '*'
local LONGEST = 256
local MAX_AT_ONCE = 16
local NONE = {} -- read, never written

function Tx.fields.request_leases() return {} end -- requestId -> its text, or false
function Tx.fields.changed_requests() return {} end -- requestId -> true

function RequestLeases.split(acquire_ids)
  local ids = {}
  for id in string.gmatch(acquire_ids, '[^|]+') do ids[#ids + 1] = id end
  return ids
end

-- The acquireIds of a request; only some of them if they are in a set.
function RequestLeases.some(tx, request_id)
  local held = redis.call('HGET', tx.key.requestLeases, request_id)
  if held ~= RequestLeases.IN_SET then return RequestLeases.split(held or '') end
  return redis.call('SRANDMEMBER', tx.key:leasesOfRequest(request_id), MAX_AT_ONCE)
end

-- Reads the texts of many requests with one call. The text of a single request is read when it is needed.
function RequestLeases.read(tx, request_ids)
  if not request_ids[2] then return end
  local known = tx.request_leases
  for index, text in ipairs(redis.call('HMGET', tx.key.requestLeases, unpack(request_ids))) do
    known[request_ids[index]] = text
  end
end

local function change(tx, known, request_id, text)
  if known[request_id] ~= nil then
    known[request_id], tx.changed_requests[request_id] = text, true
  elseif text then
    redis.call('HSET', tx.key.requestLeases, request_id, text)
  else
    redis.call('HDEL', tx.key.requestLeases, request_id)
  end
end

function RequestLeases.add(tx, request_id, acquire_id)
  local known = rawget(tx, 'request_leases') or NONE
  local held = known[request_id]
  if held == nil then
    if redis.call('HSETNX', tx.key.requestLeases, request_id, acquire_id) == 1 then return end
    held = redis.call('HGET', tx.key.requestLeases, request_id)
  end
  local text = held and held .. '|' .. acquire_id or acquire_id
  if held == RequestLeases.IN_SET then
    redis.call('SADD', tx.key:leasesOfRequest(request_id), acquire_id)
  elseif #text <= LONGEST then
    change(tx, known, request_id, text)
  else
    redis.call('SADD', tx.key:leasesOfRequest(request_id), unpack(RequestLeases.split(text)))
    change(tx, known, request_id, RequestLeases.IN_SET)
  end
end

function RequestLeases.remove(tx, request_id, acquire_id)
  local known = rawget(tx, 'request_leases') or NONE
  local held = known[request_id]
  if held == nil then held = redis.call('HGET', tx.key.requestLeases, request_id) end
  if held == acquire_id then return change(tx, known, request_id, false) end
  if held == RequestLeases.IN_SET then
    redis.call('SREM', tx.key:leasesOfRequest(request_id), acquire_id)
    if redis.call('EXISTS', tx.key:leasesOfRequest(request_id)) == 0 then change(tx, known, request_id, false) end
  elseif held then
    local left = {}
    for _, id in ipairs(RequestLeases.split(held)) do
      if id ~= acquire_id then left[#left + 1] = id end
    end
    change(tx, known, request_id, left[1] and table.concat(left, '|') or false)
  end
end

function RequestLeases.save(tx)
  if not rawget(tx, 'changed_requests') then return end
  local kept, gone = {}, {}
  for request_id in pairs(tx.changed_requests) do
    local text = tx.request_leases[request_id]
    if text then
      kept[#kept + 1], kept[#kept + 2] = request_id, text
    else
      gone[#gone + 1] = request_id
    end
  end
  Hashes.write(tx.key.requestLeases, kept, gone)
  tx.changed_requests = nil
end

return RequestLeases

-- The leases of each request, so that an abort need not look at all leases: a text with their acquireIds, since almost
-- all have one or two; beyond LONGEST bytes a set, and the text is IN_SET.
local RequestLeases = {}

RequestLeases.IN_SET = '*'
local LONGEST = 256

function RequestLeases.split(acquire_ids)
  local ids = {}
  for id in string.gmatch(acquire_ids, '[^|]+') do ids[#ids + 1] = id end
  return ids
end

function RequestLeases.add(tx, request_id, acquire_id)
  if redis.call('HSETNX', tx.key.requestLeases, request_id, acquire_id) == 1 then return end
  local held = redis.call('HGET', tx.key.requestLeases, request_id)
  local text = held .. '|' .. acquire_id
  if held ~= RequestLeases.IN_SET and #text <= LONGEST then
    redis.call('HSET', tx.key.requestLeases, request_id, text)
    return
  end
  if held ~= RequestLeases.IN_SET then
    redis.call('SADD', tx.key:leasesOfRequest(request_id), unpack(RequestLeases.split(held)))
    redis.call('HSET', tx.key.requestLeases, request_id, RequestLeases.IN_SET)
  end
  redis.call('SADD', tx.key:leasesOfRequest(request_id), acquire_id)
end

function RequestLeases.remove(tx, request_id, acquire_id)
  local held = redis.call('HGET', tx.key.requestLeases, request_id)
  local left = {}
  if held == RequestLeases.IN_SET then
    redis.call('SREM', tx.key:leasesOfRequest(request_id), acquire_id)
    if redis.call('EXISTS', tx.key:leasesOfRequest(request_id)) == 1 then return end
  elseif held and held ~= acquire_id then
    for _, id in ipairs(RequestLeases.split(held)) do
      if id ~= acquire_id then left[#left + 1] = id end
    end
  end
  if left[1] then
    redis.call('HSET', tx.key.requestLeases, request_id, table.concat(left, '|'))
  else
    redis.call('HDEL', tx.key.requestLeases, request_id)
  end
end

return RequestLeases

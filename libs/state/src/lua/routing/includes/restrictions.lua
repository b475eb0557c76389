--- @include "../../includes/keys"
--- @include "servers"
-- What an acquire asks of its server, and the lanes of those who wait with such wishes: one lane for each different
-- wish, so that nobody who cannot use a server stands in the way of one who can.
local MOST_LANES = 128
local NAMES = { 'weightVersion', 'minWeightVersion', 'maxWeightLag', 'excludeServers', 'labels', 'needs' }

-- Of the servers that take leases; entries that are out of date are corrected on the way.
local function newest_weight_version()
  while true do
    local first = redis.call('ZREVRANGE', key.serverVersions, 0, 0, 'WITHSCORES')
    if not first[1] then return 0 end
    local server = server_of(first[1])
    if not server or not is_usable(server) then
      redis.call('ZREM', key.serverVersions, first[1])
    elseif server.weightVersion ~= tonumber(first[2]) then
      place_version(server, true)
    else
      return server.weightVersion
    end
  end
end

local function is_restricted(item)
  return item.weightVersion ~= nil or item.minWeightVersion ~= nil or item.maxWeightLag ~= nil
    or (item.excludeServers ~= nil and #item.excludeServers > 0) or (item.labels ~= nil and next(item.labels) ~= nil)
    or (item.needs ~= nil and #item.needs > 0)
end

-- The first wish that this server does not meet, or nil.
local function unmet_wish(server, item)
  if item.weightVersion and server.weightVersion ~= item.weightVersion then return 'weightVersion' end
  if item.minWeightVersion and server.weightVersion < item.minWeightVersion then return 'minWeightVersion' end
  if item.maxWeightLag and newest_weight_version() - server.weightVersion > item.maxWeightLag then return 'maxWeightLag' end
  for _, id in ipairs(item.excludeServers or {}) do
    if id == server.id then return 'excludeServers' end
  end
  for name, value in pairs(item.labels or {}) do
    if labels_of(server)[name] ~= value then return 'labels' end
  end
  for _, feature in ipairs(item.needs or {}) do
    if lacks_of(server)[feature] then return 'needs' end
  end
  return nil
end

local function fits(server, item) return server ~= nil and unmet_wish(server, item) == nil end

-- What is kept of it with the lease; nil for most.
local function asked_text(item)
  if not is_restricted(item) then return nil end
  local asked = {}
  for _, name in ipairs(NAMES) do asked[name] = item[name] end
  return cjson.encode(asked)
end

-- The same text for the same wish, whatever the order it came in.
local function restriction_text(item)
  local parts = {}
  for _, name in ipairs({ 'weightVersion', 'minWeightVersion', 'maxWeightLag' }) do
    table.insert(parts, item[name] and string.format('%.0f', item[name]) or '')
  end
  local excluded, labels, needs = {}, {}, {}
  for _, id in ipairs(item.excludeServers or {}) do table.insert(excluded, id) end
  for name, value in pairs(item.labels or {}) do table.insert(labels, name .. '=' .. value) end
  table.sort(excluded)
  for _, feature in ipairs(item.needs or {}) do table.insert(needs, feature) end
  table.sort(labels)
  table.sort(needs)
  return table.concat(parts, '|') .. '|' .. table.concat(excluded, ',') .. '|' .. table.concat(labels, ',')
    .. '|' .. table.concat(needs, ',')
end

local restricted_lanes -- lane -> restriction, read once
local function all_restricted_lanes()
  if not restricted_lanes then
    restricted_lanes = {}
    local flat = redis.call('HGETALL', key.restrictedLanes)
    for index = 1, #flat, 2 do
      if redis.call('EXISTS', key.serverLane(flat[index])) == 1 then
        restricted_lanes[flat[index]] = cjson.decode(flat[index + 1])
      else
        redis.call('HDEL', key.restrictedLanes, flat[index])
      end
    end
  end
  return restricted_lanes
end

-- The lane for a wish; nil when it would be one too many. One that waits already is not turned away.
local function lane_of(item)
  if not is_restricted(item) then return '*' end
  local text = restriction_text(item)
  if text == string.format('%.0f|||||', item.weightVersion or -1) then return string.format('@%.0f', item.weightVersion) end
  local lane = '@r' .. string.sub(redis.sha1hex(text), 1, 16)
  local may_wait = item.replyTo ~= nil and (item.waitMs or 0) > 0
  if not may_wait or redis.call('HEXISTS', key.restrictedLanes, lane) == 1 then return lane end
  if redis.call('HLEN', key.restrictedLanes) >= MOST_LANES then
    restricted_lanes = nil
    all_restricted_lanes() -- forgets empty ones
    if redis.call('HLEN', key.restrictedLanes) >= MOST_LANES and not item.lane then return nil end
  end
  redis.call('HSET', key.restrictedLanes, lane, asked_text(item))
  restricted_lanes = nil
  return lane
end

-- The lanes whose waiters this server may serve.
local function lanes_for(server)
  local lanes = { server.id, '*', string.format('@%.0f', server.weightVersion) }
  if redis.call('EXISTS', key.restrictedLanes) == 1 then
    for lane, restriction in pairs(all_restricted_lanes()) do
      if fits(server, restriction) then table.insert(lanes, lane) end
    end
  end
  return lanes
end

-- Restrictions of an acquire to certain servers, and the lanes in which restricted acquires wait. Each different
-- restriction has a lane, so that a waiter that cannot use a server delays no waiter that can.
local Restrictions = {}

local MAX_LANES = 128
local NAMES = { 'weightVersion', 'minWeightVersion', 'maxWeightLag', 'excludeServers', 'labels', 'needs', 'model' }

-- Newest weight version of the servers that take leases. Index entries that are out of date are corrected on the way.
function Restrictions.newest_weight_version(tx)
  while true do
    local first = redis.call('ZREVRANGE', tx.key.serverVersions, 0, 0, 'WITHSCORES')
    if not first[1] then return 0 end
    local server = Servers.get(tx, first[1])
    if not server or not Servers.is_usable(tx, server) then
      redis.call('ZREM', tx.key.serverVersions, first[1])
    elseif server.weightVersion ~= tonumber(first[2]) then
      Scores.place_version(tx, server, true)
    else
      return server.weightVersion
    end
  end
end

function Restrictions.is_restricted(item)
  return (item.weightVersion or item.minWeightVersion or item.maxWeightLag or item.excludeServers or item.needs
    or item.model or (item.labels and next(item.labels))) ~= nil
end

-- Name of the first restriction that this server does not meet, or nil.
function Restrictions.unmet(tx, server, item)
  if item.weightVersion and server.weightVersion ~= item.weightVersion then return 'weightVersion' end
  if item.minWeightVersion and server.weightVersion < item.minWeightVersion then return 'minWeightVersion' end
  if item.maxWeightLag and Restrictions.newest_weight_version(tx) - server.weightVersion > item.maxWeightLag then
    return 'maxWeightLag'
  end
  for _, id in ipairs(item.excludeServers or {}) do
    if id == server.id then return 'excludeServers' end
  end
  for name, value in pairs(item.labels or {}) do
    if Servers.labels_of(tx, server)[name] ~= value then return 'labels' end
  end
  for _, feature in ipairs(item.needs or {}) do
    if Servers.lacks_of(tx, server)[feature] then return 'needs' end
  end
  if item.model and not Models.are_listed(tx, server, item.model) then return 'model' end
  return nil
end

function Restrictions.fits(tx, server, item) return server ~= nil and Restrictions.unmet(tx, server, item) == nil end

-- Restrictions of an acquire as they are kept with the lease, JSON; nil for most acquires.
function Restrictions.asked_text(item)
  if not Restrictions.is_restricted(item) then return nil end
  local asked = {}
  for _, name in ipairs(NAMES) do asked[name] = item[name] end
  return cjson.encode(asked)
end

-- Canonical text of the restrictions of an acquire: the order of lists and labels does not matter.
function Restrictions.text(item)
  local parts = {}
  for _, name in ipairs({ 'weightVersion', 'minWeightVersion', 'maxWeightLag' }) do
    table.insert(parts, item[name] and Format.integer(item[name]) or '')
  end
  local excluded, labels, needs = {}, {}, {}
  for _, id in ipairs(item.excludeServers or {}) do table.insert(excluded, id) end
  for name, value in pairs(item.labels or {}) do table.insert(labels, name .. '=' .. value) end
  table.sort(excluded)
  for _, feature in ipairs(item.needs or {}) do table.insert(needs, feature) end
  table.sort(labels)
  table.sort(needs)
  return table.concat(parts, '|') .. '|' .. table.concat(excluded, ',') .. '|' .. table.concat(labels, ',')
    .. '|' .. table.concat(needs, ',') .. '|' .. (item.model or '')
end

-- Lanes for restrictions that have waiters: lane -> restriction; read once, into tx.restricted_lanes.
local function all_restricted_lanes(tx)
  if not tx.restricted_lanes then
    tx.restricted_lanes = {}
    local flat = redis.call('HGETALL', tx.key.restrictedLanes)
    for index = 1, #flat, 2 do
      if redis.call('EXISTS', tx.key:serverLane(flat[index])) == 1 then
        tx.restricted_lanes[flat[index]] = cjson.decode(flat[index + 1])
      else
        redis.call('HDEL', tx.key.restrictedLanes, flat[index])
      end
    end
  end
  return tx.restricted_lanes
end

-- The lane for an acquire; nil when it needs a new lane and there are too many. An acquire that waits already always
-- gets a lane.
function Restrictions.lane_of(tx, item)
  if not Restrictions.is_restricted(item) then return '*' end
  local text = Restrictions.text(item)
  if text == string.format('%.0f||||||', item.weightVersion or -1) then
    return string.format('@%.0f', item.weightVersion)
  end
  local lane = '@r' .. string.sub(redis.sha1hex(text), 1, 16)
  local may_wait = item.replyTo ~= nil and (item.waitMs or 0) > 0
  if not may_wait or redis.call('HEXISTS', tx.key.restrictedLanes, lane) == 1 then return lane end
  if redis.call('HLEN', tx.key.restrictedLanes) >= MAX_LANES then
    tx.restricted_lanes = nil
    all_restricted_lanes(tx) -- forgets empty lanes
    if redis.call('HLEN', tx.key.restrictedLanes) >= MAX_LANES and not item.lane then return nil end
  end
  redis.call('HSET', tx.key.restrictedLanes, lane, Restrictions.asked_text(item))
  tx.restricted_lanes = nil
  return lane
end

-- The lanes whose waiters this server may serve.
function Restrictions.lanes_for(tx, server)
  local lanes = { server.id, '*', string.format('@%.0f', server.weightVersion) }
  if redis.call('EXISTS', tx.key.restrictedLanes) == 1 then
    for lane, restriction in pairs(all_restricted_lanes(tx)) do
      if Restrictions.fits(tx, server, restriction) then table.insert(lanes, lane) end
    end
  end
  return lanes
end

return Restrictions

--- @include "order"
--- @include "affinity"
-- What a full receipt holds.
local take_snapshot
do -- a script may have 200 locals at once
local SNAPSHOT_SERVERS = 128

local function snapshot_server(server, policy, held)
  local labels, lacks = labels_of(server), {}
  for feature in pairs(lacks_of(server)) do table.insert(lacks, feature) end
  table.sort(lacks)
  return {
    serverId = server.id,
    leases = server.load,
    hasRoom = has_room(server),
    weight = server.weight,
    weightVersion = server.weightVersion,
    chosen = server.chosen,
    tokens = policy == 'least-tokens' and tokens_of(server) or nil,
    sessions = policy == 'least-sessions' and sessions_of(server) or nil,
    turn = policy == 'round-robin' and turn_of(server) or nil,
    labels = next(labels) and labels or nil,
    lacks = lacks[1] and lacks or nil,
    kvUse = kv_use_of(server),
    groupLeases = held and held[count_name(server.id, server.epoch)] or nil,
  }
end

local WISH = { 'acquireId', 'requestId', 'sessionId', 'groupId', 'contextTokens', 'weightVersion', 'minWeightVersion',
  'maxWeightLag', 'labels', 'needs', 'dpRank', 'boundServerId', 'boundServerEpoch' }
local NUMBERS = { 'affinityBreakMargin', 'affinityBreakMaxContextTokens', 'groupAffinityCap', 'groupSpreadBelowTokens',
  'groupSpreadAboveKvUse' }

-- Everything the choice is made from, as it is before.
function take_snapshot(item, policy, bound, named)
  local held = group_leases(item)
  write_scores()
  local listed, servers = {}, {}
  local function list(server)
    if not server or listed[server.id] then return end
    listed[server.id] = true
    table.insert(servers, snapshot_server(server, policy, held))
  end
  for _, id in ipairs(redis.call('ZRANGE', key.eligible, 0, SNAPSHOT_SERVERS - 1)) do list(server_of(id)) end
  list(bound)
  list(named)
  local wish, settings = {}, { policy = policy, groupPlacement = setting('groupPlacement') }
  for _, name in ipairs(WISH) do wish[name] = item[name] end
  if item.excludeServers and #item.excludeServers > 0 then wish.excludeServers = item.excludeServers end
  for _, name in ipairs(NUMBERS) do settings[name] = number_setting(name) end
  return {
    settings = settings,
    wish = wish,
    boundTo = bound and bound.id or nil,
    namedServer = named and named.id or nil,
    newestWeightVersion = newest_weight_version(),
    servers = servers,
    truncated = redis.call('ZCARD', key.eligible) > SNAPSHOT_SERVERS or nil,
  }
end
end

-- Snapshot of a decision for its full receipt.
local DecisionSnapshot = {}

local SNAPSHOT_SERVERS = 128

local function snapshot_server(tx, server, item, held)
  local labels, lacks = Servers.labels_of(tx, server), {}
  for feature in pairs(Servers.lacks_of(tx, server)) do table.insert(lacks, feature) end
  table.sort(lacks)
  local listed = {
    serverId = server.id,
    leases = server.load,
    hasRoom = Servers.has_room(tx, server),
    weight = server.weight,
    weightVersion = server.weightVersion,
    chosen = Scores.chosen(tx, server),
    labels = next(labels) and labels or nil,
    lacks = lacks[1] and lacks or nil,
    lacksModel = item.model and not Models.are_listed(tx, server, item.model) or nil,
    kvUse = Affinity.kv_use_of(tx, server),
    groupLeases = held and held[Loads.count_name(server.id, server.epoch)] or nil,
  }
  if tx.policy.explain then
    local name, value = tx.policy.explain(tx, server)
    listed[name] = value
  end
  return listed
end

local REQUEST_FIELDS = { 'acquireId', 'requestId', 'sessionId', 'groupId', 'contextTokens', 'weightVersion',
  'minWeightVersion', 'maxWeightLag', 'labels', 'needs', 'model', 'dpRank', 'boundServerId', 'boundServerEpoch' }
local NUMBERS = { 'affinityBreakMargin', 'affinityBreakMaxContextTokens', 'groupAffinityCap', 'groupSpreadBelowTokens',
  'groupSpreadAboveKvUse' }

-- All inputs of the choice, as they are before the choice.
function DecisionSnapshot.take(tx, item, bound, named)
  local held = Affinity.group_leases(tx, item)
  Servers.write_scores(tx)
  local listed, servers = {}, {}
  local function list(server)
    if not server or listed[server.id] then return end
    listed[server.id] = true
    table.insert(servers, snapshot_server(tx, server, item, held))
  end
  for _, id in ipairs(redis.call('ZRANGE', tx.key.eligible, 0, SNAPSHOT_SERVERS - 1)) do list(Servers.get(tx, id)) end
  list(bound)
  list(named)
  local request, settings = {}, { policy = tx.policy_name, groupPlacement = Settings.get(tx, 'groupPlacement') }
  for _, name in ipairs(REQUEST_FIELDS) do request[name] = item[name] end
  if item.excludeServers and #item.excludeServers > 0 then request.excludeServers = item.excludeServers end
  for _, name in ipairs(NUMBERS) do settings[name] = Settings.number(tx, name) end
  return {
    settings = settings,
    request = request,
    boundTo = bound and bound.id or nil,
    namedServer = named and named.id or nil,
    newestWeightVersion = Restrictions.newest_weight_version(tx),
    servers = servers,
    truncated = redis.call('ZCARD', tx.key.eligible) > SNAPSHOT_SERVERS or nil,
  }
end

return DecisionSnapshot

--- @include "leases"
--- @include "narrow"
-- Where an acquire goes. The same rules in TypeScript: libs/policies/src/routing, which a differential test compares.
local BEST = 4
local visit_eligible, choose_server, may_leave_for
-- A block, since a script may have 200 locals at once, and its closures find what they share sooner.
do
local CANDIDATES_PER_PAGE, POINTS_PER_PAGE, POINTS_PER_LATER_PAGE, SNAPSHOT_SERVERS = 64, 8, 256, 128
local LOOKED_AT = 32 -- servers looked at one by one for a restricted acquire
local FAST_SCAN = 128 -- servers looked at in one choice; beyond, the scan goes on and counts as a slow one
local KV_REPORT_MS = 60000 -- an older report of KV use says nothing

-- Counts the choices whose price grows with the pool; see `slow_scans_total`.
local function count_look(looked_at)
  if looked_at == FAST_SCAN + 1 then redis.call('HINCRBY', key.meta, 'slowScans', 1) end
end

-- Servers with room in the order of the policy, as (id, score, how many so far), until `visit` says it has seen enough.
-- All of them if need be: a refusal is never for want of looking.
function visit_eligible(first_page, visit)
  local seen, size = 0, first_page
  while true do
    local known = order_of(size)
    for position = known.first + seen, #known.ids do
      local looked_at = position - known.first + 1
      count_look(looked_at)
      if visit(known.ids[position], known.scores[position], looked_at) then return end
    end
    if known.isWhole then return end
    seen = #known.ids - known.first + 1
    size = math.max(size, seen) * 2 + CANDIDATES_PER_PAGE
  end
end

-- Leases of the group by `serverId:epoch`, or nil.
local function group_leases(item)
  if not item.groupId then return nil end
  local flat = redis.call('HGETALL', key.groupLeases(item.groupId))
  if #flat == 0 then return nil end
  local held = {}
  for index = 1, #flat, 2 do held[flat[index]] = tonumber(flat[index + 1]) end
  return held
end

-- A server that lost its room without being scored anew, as after a change of settings, leaves the order here.
local function still_has_room(id)
  local server = server_of(id)
  if server and has_room(server) then return server end
  withdraw_score(id)
  return nil
end

-- As choose_in_order for an acquire that any server fits: the first one, with the next ones for the receipt.
local function choose_first(policy)
  local known = order_of(BEST)
  local ids, scores, at = known.ids, known.scores, known.first
  if not ids[at] then return nil end
  local server = still_has_room(ids[at])
  if not server then return choose_first(policy) end
  local lowest = load_in_score(scores[at], policy)
  local best = { { serverId = ids[at], key = lowest } }
  for position = 2, BEST do
    local id = ids[at + position - 1]
    if not id then break end
    best[position] = { serverId = id, key = load_in_score(scores[at + position - 1], policy) }
  end
  if policy == 'round-robin' then return server, 'round-robin', best, lowest end
  return server, best[2] and best[2].key == lowest and 'tie' or 'least-loaded', best
end

-- Servers with room that fit, as visit_eligible: the first of all servers are looked at one by one, the rest by their
-- traits.
local function visit_fitting(item, visit)
  local passed, goes_on = 0, false
  visit_eligible(LOOKED_AT + 1, function(id, score, looked_at)
    goes_on = looked_at > LOOKED_AT and has_traits()
    if goes_on then return true end
    if not fits(server_of(id), item) then return false end
    passed = passed + 1
    return visit(id, score)
  end)
  while goes_on do
    local page = redis.call('ZRANGE', narrowed_order(item), passed, passed + CANDIDATES_PER_PAGE - 1, 'WITHSCORES')
    for index = 1, #page, 2 do
      if visit(page[index], tonumber(page[index + 1])) then return end
    end
    passed = passed + CANDIDATES_PER_PAGE
    goes_on = #page == 2 * CANDIDATES_PER_PAGE
  end
end

-- The first of the lowest load; under group-spread the first of these that holds no lease of the group.
local function choose_in_order(item, policy, held)
  local spreads = held and policy ~= 'round-robin'
  local best, first, pick, lowest = {}, nil, nil, nil
  local is_stale = false
  local function visit(id, score)
    local load = load_in_score(score, policy)
    if #best < BEST then table.insert(best, { serverId = id, key = load }) end
    lowest = lowest or load
    if load == lowest and not pick then
      local server = still_has_room(id)
      is_stale = server == nil
      if is_stale then return true end
      first = first or server
      if not (spreads and held[count_name(id, server.epoch)]) then pick = server end
    end
    return #best == BEST and (pick ~= nil or load ~= lowest)
  end
  if is_restricted(item) then visit_fitting(item, visit) else visit_eligible(BEST, visit) end
  if is_stale then return choose_in_order(item, policy, held) end
  if not first then return nil end
  if policy == 'round-robin' then
    local known = order_of(BEST)
    return pick, 'round-robin', best, load_in_score(known.scores[known.first], policy)
  end
  if pick and pick ~= first then return pick, 'group-spread', best end
  return first, best[2] and best[2].key == lowest and 'tie' or 'least-loaded', best
end

local function point_of(name)
  local id, index = string.match(name, '^(.*)#(%d+)$')
  return server_of(id), tonumber(index), id
end

-- Of these points, each with its server, the first whose server is in the zset.
local function first_point_in(zset, points)
  local ids = {}
  for index, point in ipairs(points) do ids[index] = string.match(point, '^(.*)#%d+$') end
  for index, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids))) do
    local server, point = nil, nil
    if score then server, point = point_of(points[index]) end
    if server and has_room(server) and point < points_of(server.weight) then return server end
  end
  return nil
end

-- The first server clockwise from the hash of the session, else the group, else the request. The first ones are looked at
-- one by one, the rest by what is known of all.
local function choose_on_ring(item)
  write_scores() -- a server that had no room may not be on the ring yet
  local size = redis.call('ZCARD', key.ring)
  local hash = string.format('%.0f', hash_of(item.sessionId or item.groupId or item.requestId))
  local start = redis.call('ZCOUNT', key.ring, '-inf', '(' .. hash)
  local seen, stale, chosen, rest = {}, {}, nil, nil
  local visited, looked_at, per_page = 0, 0, POINTS_PER_PAGE
  while visited < size and not chosen do
    local from = (start + visited) % size
    local most = math.min(per_page, size - from, size - visited)
    local page = redis.call('ZRANGE', key.ring, from, from + most - 1)
    visited = visited + most
    if rest then
      chosen = first_point_in(rest, page)
    else
      for _, name in ipairs(page) do
        local server, point, id = point_of(name)
        if not server or point >= points_of(server.weight) then
          table.insert(stale, name)
        elseif not seen[id] then
          seen[id] = true
          looked_at = looked_at + 1
          count_look(looked_at)
          if has_room(server) and fits(server, item) then
            chosen = server
            break
          end
        end
      end
      if looked_at >= LOOKED_AT and (not is_restricted(item) or has_traits()) then
        rest, per_page = is_restricted(item) and narrowed_order(item) or key.eligible, POINTS_PER_LATER_PAGE
        if redis.call('EXISTS', rest) == 0 then break end
      end
    end
  end
  for _, name in ipairs(stale) do redis.call('ZREM', key.ring, name) end
  if not chosen then return nil end
  return chosen, 'hash', { { serverId = chosen.id, key = policy_load(chosen, 'consistent-hash') } }
end

local function kv_use_of(server)
  local field = redis.call('HMGET', key.server(server.id), 'kvUse', 'loadAtMs')
  if not field[1] or script_now() - tonumber(field[2] or 0) > KV_REPORT_MS then return nil end
  return tonumber(field[1])
end

-- Under affinity: the server with most leases of the group below the cap, among equals the one chosen longest ago.
local function choose_by_affinity(item, policy, held)
  local placement = setting('groupPlacement') or 'group-spread'
  if not held or placement == 'group-spread' or policy == 'consistent-hash' then return nil end
  if placement == 'auto' and (item.contextTokens or 0) < (number_setting('groupSpreadBelowTokens') or 2048) then
    return nil
  end
  local cap = number_setting('groupAffinityCap') or 8
  local chosen, most
  for name, count in pairs(held) do
    if count < cap and (not most or count >= most) then
      local id, epoch = string.match(name, '^(.*):(%d+)$')
      local server = server_of(id)
      if server and server.epoch == tonumber(epoch) and has_room(server) and fits(server, item)
        and (not most or count > most or server.chosen < chosen.chosen) then
        chosen, most = server, count
      end
    end
  end
  if not chosen then return nil end
  if placement == 'auto' and (kv_use_of(chosen) or 0) > (number_setting('groupSpreadAboveKvUse') or 0.7) then return nil end
  return chosen
end

-- Where it goes without a session: (server, branch, best, turn reached), or nil.
local function choose_free(item, policy)
  local held = group_leases(item)
  local together = choose_by_affinity(item, policy, held)
  if together then return together, 'group-affinity', {} end
  if policy == 'consistent-hash' then return choose_on_ring(item) end
  if not held and not is_restricted(item) then return choose_first(policy) end
  return choose_in_order(item, policy, held)
end

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
local function take_snapshot(item, policy, bound, named)
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

-- The server its session is bound to, while that is of the same epoch and takes leases.
local function bound_server(item)
  local binding = item.sessionId and binding_of(item.sessionId)
  local bound = binding and server_of(binding.serverId)
  if bound and bound.epoch == binding.epoch and is_usable(bound) then return bound end
  return nil
end

-- The server that the caller named, while that can take the lease.
local function named_server(item)
  local named = item.boundServerId and server_of(item.boundServerId)
  if not named or (item.boundServerEpoch and named.epoch ~= item.boundServerEpoch) then return nil end
  return has_room(named) and fits(named, item) and named or nil
end

-- The session leaves a server with more leases than the other one has, plus the margin; not when its context is so
-- long that another prefill costs more.
local function may_leave(item)
  local longest = number_setting('affinityBreakMaxContextTokens')
  return setting('affinityBreakMargin') and not (longest and (item.contextTokens or 0) > longest)
end

local function is_above_margin(bound, other)
  return weighed(bound.load, bound) > weighed(other.load, other) + number_setting('affinityBreakMargin')
end

-- True for one that waits for its session's server and may go to this other one instead.
function may_leave_for(item, bound, other)
  return may_leave(item) and is_above_margin(bound, other) and fits(other, item)
end

-- The choice without its receipt: (server, branch, best, turn reached), or (nil, lane to wait in).
local function choose(item, policy, bound)
  if bound and fits(bound, item) then
    if may_leave(item) then
      local other, _, best, reached = choose_free(item, policy)
      if other and other.id ~= bound.id and is_above_margin(bound, other) then
        return other, 'sticky-broken', best, reached
      end
    end
    if has_room(bound) then return bound, 'sticky-hit', {} end
    return nil, bound.id
  end
  local server, branch, best, reached = choose_free(item, policy)
  if server then return server, branch, best, reached end
  return nil, lane_of(item)
end

-- Where this acquire goes: (server, branch), or (nil, nil, lane to wait in; no lane when too many differ). It goes to
-- the server it names, if that can take it; else, and if it names none, where the policy says. A session
-- keeps to its server while that one is usable and of the same epoch, full or not, unless the margin breaks it.
-- The receipt is left for grant_lease.
function choose_server(item)
  local policy = policy_in_force()
  local bound, named = bound_server(item), named_server(item)
  local is_explained = item.explain or is_sampled(last_lease_sequence() + 1)
  local snapshot = is_explained and take_snapshot(item, policy, bound, named) or nil
  local server, branch, best, reached, via = named, 'bound', {}, nil, nil
  if not named then server, branch, best, reached = choose(item, policy, bound) end
  if not server then return nil, nil, branch end
  if item.boundServerId and not named then branch, via = 'bound-unavailable', branch end
  if #best == 0 then
    visit_eligible(BEST, function(id, score)
      table.insert(best, { serverId = id, key = load_in_score(score, policy) })
      return #best == BEST
    end)
  end
  pending_decision = {
    policy = policy,
    branch = branch,
    via = via,
    policyVersion = number_setting('version') or 0,
    key = policy_load(server, policy),
    best = best,
    eligible = order_of(BEST).count,
    snapshot = snapshot,
    reached = reached,
  }
  return server, branch
end
end

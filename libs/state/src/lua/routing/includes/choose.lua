--- @include "leases"
--- @include "visit"
--- @include "ring"
--- @include "affinity"
--- @include "snapshot"
-- Where an acquire goes. The same rules in TypeScript: libs/policies/src/routing, which a differential test compares.
local BEST = 4
local choose_server, may_leave_for
local has_snapshot = false -- one a script, but for those asked for: each is as much work as many choices
-- A block, since a script may have 200 locals at once, and its closures find what they share sooner.
do
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

-- Where it goes without a session: (server, branch, best, turn reached), or nil.
local function choose_free(item, policy)
  local held = group_leases(item)
  local together = choose_by_affinity(item, policy, held)
  if together then return together, 'group-affinity', {} end
  if policy == 'consistent-hash' then return choose_on_ring(item) end
  if not held and not is_restricted(item) then return choose_first(policy) end
  return choose_in_order(item, policy, held)
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
  local is_explained = item.explain or (not has_snapshot and is_sampled(last_lease_sequence() + 1))
  has_snapshot = has_snapshot or is_explained
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

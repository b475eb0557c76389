-- Where an acquire goes. The same rules in TypeScript: libs/policies/src/routing, which a differential test compares.
local Choose = {}

Choose.BEST = 4
-- one a script, but for those asked for: each is as much work as many choices
function Tx.fields.has_snapshot() return false end
-- A server that lost its room without being scored anew, as after a change of settings, leaves the order here.
local function still_has_room(tx, id)
  local server = Servers.get(tx, id)
  if server and Servers.has_room(tx, server) then return server end
  Scores.withdraw(tx, id)
  return nil
end

-- As choose_in_order for an acquire that any server fits: the first one, with the next ones for the receipt.
local function choose_first(tx, policy)
  local known = Order.read(tx, Choose.BEST)
  local ids, scores, at = known.ids, known.scores, known.first
  if not ids[at] then return nil end
  local server = still_has_room(tx, ids[at])
  if not server then return choose_first(tx, policy) end
  local lowest = Scores.load_in_score(scores[at], policy)
  local best = { { serverId = ids[at], key = lowest } }
  for position = 2, Choose.BEST do
    local id = ids[at + position - 1]
    if not id then break end
    best[position] = { serverId = id, key = Scores.load_in_score(scores[at + position - 1], policy) }
  end
  if policy == 'round-robin' then return server, 'round-robin', best, lowest end
  return server, best[2] and best[2].key == lowest and 'tie' or 'least-loaded', best
end

-- The first of the lowest load; under group-spread the first of these that holds no lease of the group.
local function choose_in_order(tx, item, policy, held)
  local spreads = held and policy ~= 'round-robin'
  local best, first, pick, lowest = {}, nil, nil, nil
  local is_stale = false
  local function visit(id, score)
    local load = Scores.load_in_score(score, policy)
    if #best < Choose.BEST then table.insert(best, { serverId = id, key = load }) end
    lowest = lowest or load
    if load == lowest and not pick then
      local server = still_has_room(tx, id)
      is_stale = server == nil
      if is_stale then return true end
      first = first or server
      if not (spreads and held[Loads.count_name(id, server.epoch)]) then pick = server end
    end
    return #best == Choose.BEST and (pick ~= nil or load ~= lowest)
  end
  if Restrictions.is_restricted(item) then Visit.fitting(tx, item, visit) else Visit.eligible(tx, Choose.BEST,
    visit) end
  if is_stale then return choose_in_order(tx, item, policy, held) end
  if not first then return nil end
  if policy == 'round-robin' then
    local known = Order.read(tx, Choose.BEST)
    return pick, 'round-robin', best, Scores.load_in_score(known.scores[known.first], policy)
  end
  if pick and pick ~= first then return pick, 'group-spread', best end
  return first, best[2] and best[2].key == lowest and 'tie' or 'least-loaded', best
end

-- Where it goes without a session: (server, branch, best, turn reached), or nil.
local function choose_free(tx, item, policy)
  local held = Affinity.group_leases(tx, item)
  local together = Affinity.choose(tx, item, policy, held)
  if together then return together, 'group-affinity', {} end
  if policy == 'consistent-hash' then return Ring.choose(tx, item) end
  if not held and not Restrictions.is_restricted(item) then return choose_first(tx, policy) end
  return choose_in_order(tx, item, policy, held)
end

-- The server its session is bound to, while that is of the same epoch and takes leases.
local function bound_server(tx, item)
  local binding = item.sessionId and Sessions.get(tx, item.sessionId)
  local bound = binding and Servers.get(tx, binding.serverId)
  if bound and bound.epoch == binding.epoch and Servers.is_usable(tx, bound) then return bound end
  return nil
end

-- The server that the caller named, while that can take the lease.
local function named_server(tx, item)
  local named = item.boundServerId and Servers.get(tx, item.boundServerId)
  if not named or (item.boundServerEpoch and named.epoch ~= item.boundServerEpoch) then return nil end
  return Servers.has_room(tx, named) and Restrictions.fits(tx, named, item) and named or nil
end

-- The session leaves a server with more leases than the other one has, plus the margin; not when its context is so
-- long that another prefill costs more.
local function may_leave(tx, item)
  local longest = Settings.number(tx, 'affinityBreakMaxContextTokens')
  return Settings.get(tx, 'affinityBreakMargin') and not (longest and (item.contextTokens or 0) > longest)
end

local function is_above_margin(tx, bound, other)
  return Loads.weighed(bound.load, bound) > Loads.weighed(other.load, other) + Settings.number(tx,
    'affinityBreakMargin')
end

-- True for one that waits for its session's server and may go to this other one instead.
function Choose.may_leave_for(tx, item, bound, other)
  return may_leave(tx, item) and is_above_margin(tx, bound, other) and Restrictions.fits(tx, other, item)
end

-- The choice without its receipt: (server, branch, best, turn reached), or (nil, lane to wait in).
local function choose(tx, item, policy, bound)
  if bound and Restrictions.fits(tx, bound, item) then
    if may_leave(tx, item) then
      local other, _, best, reached = choose_free(tx, item, policy)
      if other and other.id ~= bound.id and is_above_margin(tx, bound, other) then
        return other, 'sticky-broken', best, reached
      end
    end
    if Servers.has_room(tx, bound) then return bound, 'sticky-hit', {} end
    return nil, bound.id
  end
  local server, branch, best, reached = choose_free(tx, item, policy)
  if server then return server, branch, best, reached end
  return nil, Restrictions.lane_of(tx, item)
end

-- Where this acquire goes: (server, branch), or (nil, nil, lane to wait in; no lane when too many differ). It goes to
-- the server it names, if that can take it; else, and if it names none, where the policy says. A session
-- keeps to its server while that one is usable and of the same epoch, full or not, unless the margin breaks it.
-- The receipt is left for grant_lease.
function Choose.server(tx, item)
  local policy = Scores.policy(tx)
  local bound, named = bound_server(tx, item), named_server(tx, item)
  local is_explained = item.explain or (not tx.has_snapshot and Decisions.is_sampled(tx, Leases.last_sequence(tx) + 1))
  tx.has_snapshot = tx.has_snapshot or is_explained
  local snapshot = is_explained and Snapshot.take(tx, item, policy, bound, named) or nil
  local server, branch, best, reached, via = named, 'bound', {}, nil, nil
  if not named then server, branch, best, reached = choose(tx, item, policy, bound) end
  if not server then return nil, nil, branch end
  if item.boundServerId and not named then branch, via = 'bound-unavailable', branch end
  if #best == 0 then
    Visit.eligible(tx, Choose.BEST, function(id, score)
      table.insert(best, { serverId = id, key = Scores.load_in_score(score, policy) })
      return #best == Choose.BEST
    end)
  end
  tx.pending_decision = {
    policy = policy,
    branch = branch,
    via = via,
    policyVersion = Settings.number(tx, 'version') or 0,
    key = Scores.load_of(tx, server, policy),
    best = best,
    eligible = Order.read(tx, Choose.BEST).count,
    snapshot = snapshot,
    reached = reached,
  }
  return server, branch
end

return Choose

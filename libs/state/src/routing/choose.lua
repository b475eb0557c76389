-- Choice of the server for an acquire. libs/policies/src/routing has the same rules in TypeScript; a differential test
-- compares both.
local Choose = {}

-- True when this transition has taken a snapshot: one at most, besides snapshots that acquires request (`explain`),
-- because a snapshot costs as much as many choices.
function Tx.fields.has_snapshot() return false end

-- The server of this id, if it has room. A server that lost its room and was not scored since, as after a change of
-- settings, is taken out of the order here.
local function still_has_room(tx, id)
  local server = tx.known_servers[id] or Servers.get(tx, id)
  if server and Servers.has_room(tx, server) then return server end
  Scores.withdraw(tx, id)
  return nil
end

local function branch_of(tx, is_tie) return tx.policy.branch or (is_tie and 'tie' or 'least-loaded') end

-- Chooses the first server of the order, for an acquire that every server fits. Returns what choose_in_order returns.
local function choose_first(tx)
  local order = Order.read(tx, Order.BEST)
  local first, scores, unit = order.first, order.scores, order.unit
  if first > order.last then return nil end
  local server = still_has_room(tx, order.ids[first])
  if not server then return choose_first(tx) end
  local lowest = math.floor(scores[first] / unit)
  -- Scores are whole numbers: the next server has the same load when its score is below the lowest score of load + 1.
  local is_tie = first < order.last and scores[first + 1] < (lowest + 1) * unit
  return server, branch_of(tx, is_tie), Order.best(order), lowest, lowest
end

-- Chooses the first fitting server of the lowest load; under group-spread the first of these that holds no lease of the
-- group.
local function choose_in_order(tx, item, held)
  local spreads = held and tx.policy.branch == nil
  local unit = tx.policy.unit or Loads.LOAD_UNIT
  local best, looked_at, ties, first, pick, lowest = '', 0, 0, nil, nil, nil
  local is_stale = false
  local function visit(id, score)
    local load = math.floor(score / unit)
    if looked_at < Order.BEST then best = best .. id .. '=' .. Format.integer(load) .. ';' end
    looked_at = looked_at + 1
    lowest = lowest or load
    if load == lowest then ties = ties + 1 end
    if load == lowest and not pick then
      local server = still_has_room(tx, id)
      is_stale = server == nil
      if is_stale then return true end
      first = first or server
      if not (spreads and held[Loads.count_name(id, server.epoch)]) then pick = server end
    end
    return looked_at >= Order.BEST and (pick ~= nil or load ~= lowest)
  end
  if Restrictions.is_restricted(item) then Visit.fitting(tx, item, visit) else Visit.eligible(tx, Order.BEST, visit) end
  if is_stale then return choose_in_order(tx, item, held) end
  if not first then return nil end
  if pick and pick ~= first then return pick, 'group-spread', best end
  -- The turn that the pool has reached is the load of its first server, not of the first server that fits.
  local order = Order.read(tx, Order.BEST)
  return first, branch_of(tx, ties > 1), best, Order.load_at(order, order.first)
end

-- Chooses a server without a session: (server, branch, best, lowest load of all, load of the server), or nil.
local function choose_free(tx, item, is_restricted)
  local policy = tx.policy
  if policy.candidates then
    local server = policy.candidates(tx, item)
    if not server then return nil end
    return server, policy.branch, server.id .. '=' .. Format.integer(policy.score(tx, server)) .. ';'
  end
  local held = item.groupId and Affinity.group_leases(tx, item)
  local together = held and Affinity.choose(tx, item, held)
  if together then return together, 'group-affinity' end
  if not held and not is_restricted then return choose_first(tx) end
  return choose_in_order(tx, item, held)
end

-- The server to which the session is bound, if it has the same epoch and takes leases; else nil.
local function bound_server(tx, item)
  local binding = Sessions.get(tx, item.sessionId)
  local bound = binding and Servers.get(tx, binding.serverId)
  if bound and bound.epoch == binding.epoch and Servers.is_usable(tx, bound) then return bound end
  return nil
end

-- The server that the caller named, if it can take the lease; else nil.
local function named_server(tx, item)
  local named = Servers.get(tx, item.boundServerId)
  if not named or (item.boundServerEpoch and named.epoch ~= item.boundServerEpoch) then return nil end
  return Servers.has_room(tx, named) and Restrictions.fits(tx, named, item) and named or nil
end

-- Whether a session may leave its server when this server has more leases than another server plus the margin. A
-- session with a long context stays, because another prefill would cost more.
local function may_leave(tx, item)
  local longest = Settings.number(tx, 'affinityBreakMaxContextTokens')
  return Settings.get(tx, 'affinityBreakMargin') and not (longest and (item.contextTokens or 0) > longest)
end

local function is_above_margin(tx, bound, other)
  return Loads.weighed(bound.load, bound) > Loads.weighed(other.load, other) + Settings.number(tx,
    'affinityBreakMargin')
end

-- True when an acquire that waits for the server of its session (`bound`) may go to the other server instead.
function Choose.may_leave_for(tx, item, bound, other)
  return may_leave(tx, item) and is_above_margin(tx, bound, other) and Restrictions.fits(tx, other, item)
end

-- Chooses a server with a session: (server, branch, best, lowest load of all), or nil to wait for the bound server.
local function choose_bound(tx, item, bound, is_restricted)
  if may_leave(tx, item) then
    local other, _, best, lowest = choose_free(tx, item, is_restricted)
    if other and other.id ~= bound.id and is_above_margin(tx, bound, other) then
      return other, 'sticky-broken', best, lowest
    end
  end
  if Servers.has_room(tx, bound) then return bound, 'sticky-hit' end
  return nil
end

local function choose_server(tx, item)
  local is_restricted = Restrictions.is_restricted(item)
  local bound = item.sessionId and bound_server(tx, item)
  local home = bound and (not is_restricted or Restrictions.fits(tx, bound, item)) and bound
  local kind = Admission.kind(tx, item, home)
  local named = item.boundServerId and named_server(tx, item)
  local snapshot, server, branch, best, reached, key, via
  -- An admission depends on more than a snapshot has.
  if not kind and (item.explain or ((tx.sequence + 1) % tx.sample_every == 0 and not tx.has_snapshot)) then
    tx.has_snapshot, snapshot = true, DecisionSnapshot.take(tx, item, bound, named)
  end
  if named then
    server, branch = named, 'bound'
  elseif kind then
    server, branch = Admission.place(tx, item, home, kind)
    if not server then return nil, branch end
  elseif home then
    server, branch, best, reached = choose_bound(tx, item, home, is_restricted)
    if not server then return nil, home.id end
  else
    server, branch, best, reached, key = choose_free(tx, item, is_restricted)
    if not server then return nil, Restrictions.lane_of(tx, item) end
  end
  if item.boundServerId and not named then branch, via = 'bound-unavailable', branch end
  local order = reached and tx.order or Order.read(tx, Order.BEST)
  return server, { branch = branch, via = via, key = key or tx.policy.score(tx, server), best = best
    or Order.best(order), eligible = order.count, reached = reached, snapshot = snapshot, isRestricted = is_restricted }
end

-- A copy of the acquire that excludes the servers which the acquire avoids. The copy has no session if the acquire
-- avoids the server of its session, and names no server if the acquire avoids the server that it names.
local function without_avoided(tx, item)
  local elsewhere, avoids = {}, {}
  for name, value in pairs(item) do elsewhere[name] = value end
  elsewhere.excludeServers = { unpack(item.excludeServers or {}) }
  for _, id in ipairs(item.avoidServers) do
    table.insert(elsewhere.excludeServers, id)
    avoids[id] = true
  end
  local bound = item.sessionId and bound_server(tx, item)
  if bound and avoids[bound.id] then elsewhere.sessionId = nil end
  if item.boundServerId and avoids[item.boundServerId] then elsewhere.boundServerId = nil end
  return elsewhere
end

-- Chooses the server of an acquire: (server, receipt), or (nil, lane to wait in; no lane when there are too many). The
-- server that the acquire names is chosen if it can take the lease; otherwise the policy decides. A session keeps its
-- server while this is usable and of the same epoch, full or not, unless the margin breaks the binding. A server that
-- the acquire avoids is chosen only while no other server can take the lease.
-- Receipt: {branch, via?, key, best, eligible, reached?, snapshot?, isRestricted}.
function Choose.server(tx, item)
  if item.avoidServers then
    local elsewhere = without_avoided(tx, item)
    local server, choice = choose_server(tx, elsewhere)
    if server then
      -- A later move of the lease has to meet the restrictions of the acquire, but may go to an avoided server.
      choice.isRestricted = Restrictions.is_restricted(item)
      return server, choice
    end
  end
  return choose_server(tx, item)
end

return Choose

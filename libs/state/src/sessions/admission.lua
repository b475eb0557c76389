-- Admission of sessions at turn boundaries, by KV memory (`sessionAdmission`). A turn of a resident session never waits
-- for memory. Paused sessions come next, in the order in which their turns began to wait; one that has waited for
-- `pausedSessionWaitMs` is placed whatever the memory. New sessions come last. lab/models/src/sessions has the same
-- rules in TypeScript; a differential test compares both.
local Admission = {}

Admission.PAUSED_LANE = '@paused'
Admission.NEW_LANE = '@new'
Admission.LANES = { [Admission.PAUSED_LANE] = 'paused', [Admission.NEW_LANE] = 'new' } -- lane -> kind of its waiters
Admission.LOOKED_AT = 8 -- waiters of a lane that are tried, so that one that fits nowhere delays no other one
local RESERVED = { paused = 0.175, new = 0.35 }
local USABLE_SHARE = 0.98
local PREFILL_TOKENS_PER_MS = 10
local DEFAULT_WAIT_MS = 600000
local AWAY_LOOKED_AT = 32 -- sessions between two turns that are compared, longest away first
local MAX_STALE = 8 -- stale sessions that one choice pauses on a server
local GAP_BINS = 23
local MAX_ANCESTORS = 16

function Tx.fields.waits_for_kv(tx) return {} end -- acquireId -> true

-- The outlook of the pool: {away: share of sessions by index, staleMs}; nil until one was stored.
function Tx.fields.outlook(tx)
  local flat = Hashes.all(tx.key.sessionOutlook)
  if not flat.staleMs then return { staleMs = DEFAULT_WAIT_MS } end
  local away = {}
  for bin = 0, GAP_BINS do away[bin] = tonumber(flat['away' .. bin]) end
  return { away = away, staleMs = tonumber(flat.staleMs) }
end

local function share_away(away, ms)
  if ms < 1 then return 1 - (1 - away[0]) * math.max(0, ms) end
  local _, exponent = math.frexp(ms)
  local bin = math.min(GAP_BINS, exponent - 1)
  local following = away[bin + 1]
  if not following then return away[bin] end
  return away[bin] + (following - away[bin]) * (ms / 2 ^ bin - 1)
end

local function chance_of_return(outlook, away_ms, within_ms)
  if not outlook.away then return within_ms / (within_ms + away_ms + 1000) end
  return 1 - share_away(outlook.away, away_ms + within_ms) / share_away(outlook.away, away_ms)
end

-- Sessions between two turns on a server, longest away first, as {id, binding}. An acquire leaves the entry of its
-- session in the index, since that costs nothing; entries of sessions with calls are removed here.
local function read_away(tx, server, count)
  local key, away, goes_on = tx.key:awaySessions(server.id, server.epoch), {}, true
  while goes_on and not away[count] do
    local ids, busy = redis.call('ZRANGE', key, #away, #away + AWAY_LOOKED_AT - 1), {}
    Sessions.read(tx, ids)
    for _, id in ipairs(ids) do
      local binding = Sessions.get(tx, id)
      if binding and binding.leases == 0 then away[#away + 1] = { id = id, binding = binding }
      else busy[#busy + 1] = id end
    end
    if busy[1] then redis.call('ZREM', key, unpack(busy)) end
    goes_on = busy[1] ~= nil and #ids == AWAY_LOOKED_AT
  end
  return away
end

local function pause(tx, one)
  Residency.pause(tx, one.id, one.binding)
  Sessions.save(tx, one.id, one.binding)
  redis.call('HINCRBY', tx.key.meta, 'sessionPauses', 1)
end

local function is_over(sums) return sums.capacity ~= nil and sums.tokens > USABLE_SHARE * sums.capacity end

-- Pauses sessions between two turns while the contexts on the server exceed its memory: first the session with the
-- least cost of computing its context again, times the probability that it returns before that would be done.
function Admission.relieve(tx, server)
  if not tx.admits_by_kv or not is_over(Residency.sums_of_server(tx, server)) then return end
  local away = read_away(tx, server, AWAY_LOOKED_AT)
  while away[1] and is_over(Residency.sums_of_server(tx, server)) do
    local chosen, lowest
    for position, one in ipairs(away) do
      local tokens = Residency.own_tokens(one.binding)
      local cost = tokens
        * chance_of_return(tx.outlook, tx.now - one.binding.sinceMs, tokens / PREFILL_TOKENS_PER_MS)
      if not lowest or cost < lowest then chosen, lowest = position, cost end
    end
    pause(tx, table.remove(away, chosen))
  end
end

local function has_kv_room(tx, server, need, kind)
  local sums = Residency.sums_of_server(tx, server)
  if not sums.capacity or sums.tokens <= 0 then return true end
  local tokens = need.family[Loads.count_name(server.id, server.epoch)] and need.own or need.own + need.shared
  return sums.tokens + tokens + RESERVED[kind] * (sums.growth + need.growth) <= USABLE_SHARE * sums.capacity
end

-- True when the server has KV memory for the need, after sessions that are not expected to return were paused.
local function makes_kv_room(tx, server, need, kind)
  if has_kv_room(tx, server, need, kind) then return true end
  for _, one in ipairs(read_away(tx, server, MAX_STALE)) do
    if tx.now - one.binding.sinceMs <= tx.outlook.staleMs then return false end
    pause(tx, one)
    if has_kv_room(tx, server, need, kind) then return true end
  end
  return false
end

-- How an acquire is admitted: 'paused' or 'new'; nil for an acquire that needs no admission. `bound`: the server of its
-- session, if that server takes leases and fits.
function Admission.kind(tx, item, bound)
  if not item.sessionId or not tx.admits_by_kv then return nil end
  local binding = Sessions.get(tx, item.sessionId)
  if bound and (not binding.context or BindingRecord.is_resident(binding)) then return nil end
  if binding then return 'paused' end
  -- The parent holds memory while it waits for this session.
  return item.parentSessionId and Sessions.get(tx, item.parentSessionId) and 'paused' or 'new'
end

-- True when an acquire names another parent than the session has, or a descendant of the session.
function Admission.has_wrong_parent(tx, item)
  if not item.parentSessionId or not item.sessionId or not tx.admits_by_kv then return false end
  local binding = Sessions.get(tx, item.sessionId)
  if binding and binding.context then return binding.parent ~= '' and binding.parent ~= item.parentSessionId end
  local id = item.parentSessionId
  for _ = 1, MAX_ANCESTORS do
    if id == item.sessionId then return true end
    local ancestor = Sessions.get(tx, id)
    id = ancestor and ancestor.parent
    if not id or id == '' then return false end
  end
  return false
end

-- What the acquire adds to a server: own and shared tokens, growth, and its family.
local function need_of(tx, item, binding)
  local parent = item.parentSessionId and Sessions.get(tx, item.parentSessionId)
  local known = binding and binding.context and binding or {}
  local context = item.contextTokens or known.context or 0
  local family = Residency.read_family(tx, known.family or Residency.name_family(item.sessionId, item, parent))
  local shared = math.min(context, tonumber(family.shared or known.shared or context))
  return { own = context - shared, shared = shared, growth = Residency.expected_growth(tx, context), family = family }
end

-- True when other acquires of the kind, or of a kind before it, are to be tried first.
local function is_behind(tx, kind)
  if not tx.has_waiters then return false end
  local paused = redis.call('ZCARD', tx.key:serverLane(Admission.PAUSED_LANE))
  if kind == 'paused' then return paused >= Admission.LOOKED_AT end
  return paused > 0 or redis.call('ZCARD', tx.key:serverLane(Admission.NEW_LANE)) > 0
end

-- A paused session notes when its turn began to wait, so that repeats of its acquire do not begin again.
local function wait_in(tx, item, binding, kind)
  tx.waits_for_kv[item.acquireId] = true
  if binding and binding.context then
    if BindingRecord.is_resident(binding) then Residency.pause(tx, item.sessionId, binding) end
    if Residency.await(tx, binding) then Sessions.save(tx, item.sessionId, binding) end
  end
  return nil, kind == 'paused' and Admission.PAUSED_LANE or Admission.NEW_LANE
end

-- Reads the sums of the servers that the choices of this transition will probably take.
local function read_sums_ahead(tx)
  if tx.has_sums or tx.expected_choices == 1 then return end
  tx.has_sums = true
  local order, servers = Order.read(tx, Order.BEST), {}
  for position = order.first, math.min(order.last, order.first + tx.expected_choices - 1) do
    servers[#servers + 1] = Servers.get(tx, order.ids[position])
  end
  Residency.read_sums_of_servers(tx, servers)
end

-- Chooses the server of an acquire that needs admission: (server, branch), or (nil, lane to wait in). `home`: the
-- server of the session, if that server takes leases and fits; it may still have the context in its cache.
function Admission.place(tx, item, home, kind)
  local binding = Sessions.get(tx, item.sessionId)
  if not item.lane and is_behind(tx, kind) then return wait_in(tx, item, binding, kind) end
  local is_overdue = binding and binding.state == BindingRecord.WAITING
    and tx.now - binding.sinceMs >= (Settings.number(tx, 'pausedSessionWaitMs') or DEFAULT_WAIT_MS)
  local need = need_of(tx, item, binding)
  local function can_take(server)
    return Servers.has_room(tx, server) and Restrictions.fits(tx, server, item)
      and (is_overdue or makes_kv_room(tx, server, need, kind))
  end
  local chosen = home and can_take(home) and home
  if not chosen then
    read_sums_ahead(tx)
    Visit.eligible(tx, Order.BEST, function(id, _, looked_at)
      local server = Servers.get(tx, id)
      if server and can_take(server) then chosen = server end
      return chosen or looked_at >= Visit.LOOKED_AT
    end)
  end
  if not chosen then return wait_in(tx, item, binding, kind) end
  return chosen, kind == 'paused' and 'resumed' or 'admitted'
end

-- Score of a waiter of the lane of paused sessions: when its turn began to wait.
function Admission.score(tx, waiter)
  local binding = Sessions.get(tx, waiter.sessionId)
  return Format.integer(binding and binding.state == BindingRecord.WAITING and binding.sinceMs or waiter.parkedAtMs)
end

return Admission

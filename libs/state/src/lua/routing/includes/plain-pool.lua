--- @include "../../includes/keys"
--- @include "../../includes/clock"
--- @include "server-hash"
--- @include "counts"
--- @include "session-text"
--- @include "request-leases"
-- What the plain acquire and release share: the common case of a pool by least-inflight where nobody waits. Servers are
-- read by their cards, workers and sessions once, and everything is written by one command for many. What is not plain
-- is left to the full scripts before anything of it was written. A script of this kind is set up for each call, so it
-- has few functions.
-- A card: five doubles (believed until, leases at most, weight, weight version, start), the epoch, and the JSON of
-- `describe`.
local CARD_NUMBERS = '<ddddd'
local CARD = CARD_NUMBERS .. 's'
local CARD_LIFE_MS = 10000 -- one that should have been thrown away and was not is wrong for no longer

-- Settings that change nothing for a plain acquire, or are heeded here. A pool with any other, or one that is not known
-- here yet, is not plain.
local HEEDED = { version = true, scoredVersion = true, requiredWeightVersion = true, slowStartMs = true,
  slowStartFraction = true, decisionSampleEvery = true, maxSessions = true, sessionIdleMs = true,
  adaptiveConcurrency = true, adaptIntervalMs = true, affinityBreakMaxContextTokens = true, groupAffinityCap = true,
  groupSpreadBelowTokens = true, groupSpreadAboveKvUse = true, ringGeneration = true }
local DEFAULTS = { policy = 'least-inflight', groupPlacement = 'group-spread', affinityBreakMargin = 'never' }
-- These hinder acquires only.
local FOR_ACQUIRES = { groupPlacement = true, affinityBreakMargin = true, poolMaxInflight = true, paused = true,
  syncing = true }

local set = {}
local is_plain_for_acquire, is_plain_for_release = true, true
local flat_settings = redis.call('HGETALL', key.settings)
for index = 1, #flat_settings, 2 do
  local name, value = flat_settings[index], flat_settings[index + 1]
  set[name] = value
  if not HEEDED[name] and DEFAULTS[name] ~= value then
    is_plain_for_acquire = false
    if not FOR_ACQUIRES[name] then is_plain_for_release = false end
  end
end
local wanted_version, slow_start_ms = tonumber(set.requiredWeightVersion), tonumber(set.slowStartMs) or 0
local nobody_waits = redis.call('HLEN', key.acquireWaiters) == 0
local now = now_ms()

local function make_card(id)
  local server = read_server(id)
  if not server then return nil end
  local most = takes_leases(server) and math.min(server.maxInflight, server.limit or math.huge) or 0
  local card = struct.pack(CARD, now + CARD_LIFE_MS, most, server.weight, server.weightVersion,
    server.startedAtMs or 0, server.epoch) .. cjson.encode(describe(server))
  redis.call('HSET', key.serverCards, id, card)
  return card
end

local servers = {} -- by id, false for one that is not there

-- Has room when `load` is below `most`. One in slow start is not plain: its room grows with time.
local function server_on(card, id)
  local believed, most, weight, version, started, epoch, at
  if card then believed, most, weight, version, started, epoch, at = struct.unpack(CARD, card) end
  if not card or believed < now then
    card = make_card(id)
    if not card then
      servers[id] = false
      return false
    end
    believed, most, weight, version, started, epoch, at = struct.unpack(CARD, card)
  end
  local members = key.serverLeases(id, epoch)
  local server = { id = id, epoch = epoch, name = count_name(id, epoch), weight = weight,
    load = redis.call('SCARD', members), most = (not wanted_version or version == wanted_version) and most or 0,
    isWarming = slow_start_ms > 0 and started + slow_start_ms > now, members = { members }, count = 1, card = card,
    describedAt = at }
  servers[id] = server
  return server
end

local function server_by(id)
  local server = servers[id]
  if server == nil then server = server_on(redis.call('HGET', key.serverCards, id), id) end
  return server
end

-- Worker epochs as leases name them, `workerId|epoch`: what changes for them, or false for a void one.
local holders = {}
local function holder_of(worker)
  local holder = holders[worker]
  if holder == nil then
    local id, epoch = string.match(worker, '^([^|]*)|(%w+)$')
    local is_live = redis.call('HGET', key.worker(id), 'liveEpoch') == epoch
    holder = is_live and { key = key.worker(id), digest = 0, members = { key.workerLeases(id, epoch) }, count = 1 }
    holders[worker] = holder
  end
  return holder
end

-- One lease more or less in a set of leases.
local function put_into(owner, acquire_id)
  owner.count = owner.count + 1
  owner.members[owner.count] = acquire_id
end

-- Runs the command for every set that leases were put into.
local function save_members(command)
  for _, server in pairs(servers) do
    if server and server.count > 1 then redis.call(command, unpack(server.members)) end
  end
  for _, holder in pairs(holders) do
    if holder and holder.count > 1 then
      redis.call(command, unpack(holder.members))
      redis.call('HINCRBY', holder.key, 'leaseDigest', string.format('%.0f', holder.digest))
    end
  end
end

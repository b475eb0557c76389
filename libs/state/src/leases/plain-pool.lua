-- What the plain acquire and release share: the common case of a pool by least-inflight where nobody waits. Servers are
-- read by their cards, workers and sessions once, and everything is written by one command for many. What is not plain
-- is left to the full scripts before anything of it was written. 
local PlainPool = {}

-- A card: five doubles (believed until, leases at most, weight, weight version, start), the epoch, and the JSON of
-- `describe`.
PlainPool.CARD_NUMBERS = '<ddddd'
PlainPool.CARD = PlainPool.CARD_NUMBERS .. 's'
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

-- Reads what a transition of this kind goes by: `tx.plain`.
function PlainPool.open(tx)
  local set, is_plain_for_acquire, is_plain_for_release = {}, true, true
  local flat_settings = redis.call('HGETALL', tx.key.settings)
  for index = 1, #flat_settings, 2 do
    local name, value = flat_settings[index], flat_settings[index + 1]
    set[name] = value
    if not HEEDED[name] and DEFAULTS[name] ~= value then
      is_plain_for_acquire = false
      if not FOR_ACQUIRES[name] then is_plain_for_release = false end
    end
  end
  tx.plain = {
    set = set,
    is_for_acquire = is_plain_for_acquire,
    is_for_release = is_plain_for_release,
    wanted_version = tonumber(set.requiredWeightVersion),
    slow_start_ms = tonumber(set.slowStartMs) or 0,
    nobody_waits = redis.call('HLEN', tx.key.acquireWaiters) == 0,
    servers = {}, -- by id, false for one that is not there
    holders = {}, -- workerId|epoch, as leases name them: what changes for it, or false for an expired one
  }
  return tx.plain
end

function PlainPool.make_card(tx, id)
  local server = ServerHash.read(tx, id)
  if not server then return nil end
  local most = ServerHash.takes_leases(server) and math.min(server.maxInflight, server.limit or math.huge) or 0
  local card = struct.pack(PlainPool.CARD, tx.now + CARD_LIFE_MS, most, server.weight, server.weightVersion,
    server.startedAtMs or 0, server.epoch) .. cjson.encode(ServerHash.describe(server))
  redis.call('HSET', tx.key.serverCards, id, card)
  return card
end

-- Has room when `load` is below `most`. One in slow start is not plain: its room grows with time.
function PlainPool.server_on(tx, card, id)
  local believed, most, weight, version, started, epoch, at
  if card then believed, most, weight, version, started, epoch, at = struct.unpack(PlainPool.CARD, card) end
  if not card or believed < tx.now then
    card = PlainPool.make_card(tx, id)
    if not card then
      tx.plain.servers[id] = false
      return false
    end
    believed, most, weight, version, started, epoch, at = struct.unpack(PlainPool.CARD, card)
  end
  local members = tx.key:serverLeases(id, epoch)
  local server = { id = id, epoch = epoch, name = Loads.count_name(id, epoch), weight = weight,
    load = redis.call('SCARD', members), most = (not tx.plain.wanted_version or version == tx.plain.wanted_version)
      and most or 0,
    isWarming = tx.plain.slow_start_ms > 0 and started + tx.plain.slow_start_ms > tx.now, members = { members },
      count = 1, card = card,
    describedAt = at }
  tx.plain.servers[id] = server
  return server
end

function PlainPool.server_by(tx, id)
  local server = tx.plain.servers[id]
  if server == nil then server = PlainPool.server_on(tx, redis.call('HGET', tx.key.serverCards, id), id) end
  return server
end

function PlainPool.holder_of(tx, worker)
  local holder = tx.plain.holders[worker]
  if holder == nil then
    local id, epoch = string.match(worker, '^([^|]*)|(%w+)$')
    local is_live = redis.call('HGET', tx.key:worker(id), 'liveEpoch') == epoch
    holder = is_live and { key = tx.key:worker(id), digest = 0, members = { tx.key:workerLeases(id, epoch) },
      count = 1 }
    tx.plain.holders[worker] = holder
  end
  return holder
end

-- One lease more or less in a set of leases.
function PlainPool.put_into(owner, acquire_id)
  owner.count = owner.count + 1
  owner.members[owner.count] = acquire_id
end

-- Runs the command for every set that leases were put into.
function PlainPool.save_members(tx, command)
  for _, server in pairs(tx.plain.servers) do
    if server and server.count > 1 then redis.call(command, unpack(server.members)) end
  end
  for _, holder in pairs(tx.plain.holders) do
    if holder and holder.count > 1 then
      redis.call(command, unpack(holder.members))
      redis.call('HINCRBY', holder.key, 'leaseDigest', string.format('%.0f', holder.digest))
    end
  end
end

return PlainPool

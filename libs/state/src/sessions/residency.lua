-- KV memory that the contexts of sessions hold on servers, for pools with `sessionAdmission`. The sums of a server
-- epoch are kept with each change of a binding: context tokens of its resident sessions, with a prefix that a family
-- shares counted once, and the growth that is expected of these sessions. Functions change the binding in memory; the
-- caller saves the binding, and `save` writes the sums.
local Residency = {}

local MIN_BIN, MAX_BIN = 8, 24 -- bins of contexts, as in libs/policies/src/sessions/session-outlook.ts
local MAX_GAP_BIN = 24
local SUMS = '<dd' -- tokens and growth as they are stored, in binary
local CAPACITY = '=' -- before a serverId in the hash of sums: its KV memory; no id begins with it

-- Whether the pool admits sessions by KV memory.
function Tx.fields.admits_by_kv(tx) return Settings.get(tx, 'sessionAdmission') == 'kv' end
function Tx.fields.kv_sums(tx) return {} end -- serverId:epoch -> {tokens, growth, capacity?}
function Tx.fields.learned(tx) return {} end -- field of the hash of what sessions teach -> change
function Tx.fields.growth_by_bin(tx) return {} end

local function unpack_sums(tx, stored, capacity)
  local tokens, growth = 0, 0
  if stored then tokens, growth = struct.unpack(SUMS, stored) end
  return { tokens = tokens, growth = growth,
    capacity = tonumber(capacity or nil) or Settings.number(tx, 'sessionKvTokens'), isChanged = false }
end

-- The sums of a server epoch, with the changes of this transition.
function Residency.sums(tx, server_id, epoch)
  local name = Loads.count_name(server_id, epoch)
  local sums = tx.kv_sums[name]
  if not sums then
    local stored = redis.call('HMGET', tx.key.serverKv, name, CAPACITY .. server_id)
    sums = unpack_sums(tx, stored[1], stored[2])
    tx.kv_sums[name] = sums
  end
  return sums
end

-- The sums of the present epoch of a server, looked up once in a transition.
function Residency.sums_of_server(tx, server)
  if server.kvEpoch ~= server.epoch then
    server.kvSums, server.kvEpoch = Residency.sums(tx, server.id, server.epoch), server.epoch
  end
  return server.kvSums
end

-- Reads the sums of many server epochs with one call: ids of servers, and the epoch of each.
local function read_sums(tx, server_ids, epochs)
  local fields, names = {}, {}
  for index, server_id in ipairs(server_ids) do
    local name = Loads.count_name(server_id, epochs[index])
    if tx.kv_sums[name] == nil then
      tx.kv_sums[name] = false
      names[#names + 1] = name
      fields[#fields + 1], fields[#fields + 2] = name, CAPACITY .. server_id
    end
  end
  if not fields[1] then return end
  local stored = redis.call('HMGET', tx.key.serverKv, unpack(fields))
  for index, name in ipairs(names) do tx.kv_sums[name] = unpack_sums(tx, stored[2 * index - 1], stored[2 * index]) end
end

-- Reads the sums of the servers of many bindings with one call.
function Residency.read_sums(tx, bindings)
  local server_ids, epochs = {}, {}
  for index, binding in ipairs(bindings) do server_ids[index], epochs[index] = binding.serverId, binding.epoch end
  read_sums(tx, server_ids, epochs)
end

-- Reads the sums of many servers with one call.
function Residency.read_sums_of_servers(tx, servers)
  local server_ids, epochs = {}, {}
  for index, server in ipairs(servers) do server_ids[index], epochs[index] = server.id, server.epoch end
  read_sums(tx, server_ids, epochs)
end

-- Replaces the sums of a server epoch.
function Residency.set_sums(tx, server_id, epoch, tokens, growth)
  local sums = Residency.sums(tx, server_id, epoch)
  sums.tokens, sums.growth, sums.isChanged = tokens, growth, true
end

-- Stores the KV memory of a server, or forgets it: `tokens` is nil, or 0, if its engine reports none.
function Residency.set_capacity(tx, server_id, tokens)
  if tokens and tokens > 0 then
    redis.call('HSET', tx.key.serverKv, CAPACITY .. server_id, Format.integer(tokens))
  else
    redis.call('HDEL', tx.key.serverKv, CAPACITY .. server_id)
  end
end

-- `is_placed`: the caller places the server in the order anyway.
local function change(tx, binding, tokens, growth, is_placed)
  local sums = Residency.sums(tx, binding.serverId, binding.epoch)
  sums.tokens, sums.growth = math.max(0, sums.tokens + tokens), math.max(0, sums.growth + growth)
  sums.isChanged = true
  if is_placed or not Scores.go_by(tx, 'kv') then return end
  local server = Servers.get(tx, binding.serverId)
  if server and server.epoch == binding.epoch then Servers.rescore_later(tx, server) end
end

local function learn(tx, field) tx.learned[field] = (tx.learned[field] or 0) + 1 end

local function bin_of(value, least, most)
  local _, exponent = math.frexp(math.max(1, value))
  return math.max(least, math.min(most, exponent - 1))
end

-- Tokens by which a context is expected to grow; without an outlook of the pool, about its own length.
function Residency.expected_growth(tx, context)
  local bin = bin_of(context, MIN_BIN, MAX_BIN)
  local growth = tx.growth_by_bin[bin]
  if not growth then
    growth = tonumber(redis.call('HGET', tx.key.sessionOutlook, 'growth' .. bin) or nil) or math.floor(1.125 * 2 ^ bin)
    tx.growth_by_bin[bin] = growth
  end
  return growth
end

-- Tokens of a context that no other session of its family has.
function Residency.own_tokens(binding) return math.max(0, binding.context - binding.shared) end

-- Sets the context of a session, and counts its change if the session is resident.
function Residency.set_context(tx, binding, context, is_placed)
  local own, growth, first = Residency.own_tokens(binding), binding.growth, bin_of(binding.context, MIN_BIN, MAX_BIN)
  binding.context = context
  local last = bin_of(context, MIN_BIN, MAX_BIN)
  for bin = first + 1, last do learn(tx, 'reached' .. bin) end
  if last ~= first then binding.growth = Residency.expected_growth(tx, context) end
  if not BindingRecord.is_resident(binding) then return end
  local more = Residency.own_tokens(binding) - own
  if more ~= 0 or binding.growth ~= growth then change(tx, binding, more, binding.growth - growth, is_placed) end
end

-- The family of a session that begins: its group, else the family of its parent, else the session itself. The name
-- begins with the job, if the acquire names one (sessions/finish-job.lua).
function Residency.name_family(session_id, item, parent)
  local name = item.groupId or (parent and parent.family) or session_id
  local has_job = item.job and (item.groupId or not (parent and parent.family))
  return has_job and item.job .. '/' .. name or name
end

-- The values by which a session counts before its first turn.
local function begin(tx, binding, session_id, item, parent)
  binding.context = item.contextTokens or 0
  binding.shared = binding.context
  binding.growth = Residency.expected_growth(tx, binding.context)
  binding.family = Residency.name_family(session_id, item, parent)
  binding.parent = item.parentSessionId or ''
  binding.sinceMs = tx.now
  learn(tx, 'reached' .. bin_of(binding.context, MIN_BIN, MAX_BIN))
end

function Tx.fields.known_families(tx) return {} end -- family -> its hash, until a session of the family leaves

-- A family as it is stored: `shared` -> tokens, serverId:epoch -> resident sessions; empty without resident sessions.
function Residency.read_family(tx, family)
  local known = tx.known_families[family]
  if not known then
    known = Hashes.all(tx.key:sessionFamily(family))
    tx.known_families[family] = known
  end
  return known
end

-- Counts the context on the server of the binding. All sessions of a family share the prefix of its first session.
function Residency.enter(tx, binding, is_placed)
  local family, name = Residency.read_family(tx, binding.family), Loads.count_name(binding.serverId, binding.epoch)
  local key, is_first = tx.key:sessionFamily(binding.family), not family[name]
  if family.shared then
    binding.shared = tonumber(family.shared)
    family[name] = redis.call('HINCRBY', key, name, 1)
  else
    family.shared, family[name] = Format.integer(binding.shared), 1
    redis.call('HSET', key, 'shared', family.shared, name, 1)
  end
  local tokens = Residency.own_tokens(binding)
  if is_first then tokens = tokens + binding.shared end
  binding.state = BindingRecord.RESIDENT
  change(tx, binding, tokens, binding.growth, is_placed)
end

-- Takes the context off the server of the binding. The caller sets the new state.
function Residency.leave(tx, session_id, binding)
  local family, name = tx.key:sessionFamily(binding.family), Loads.count_name(binding.serverId, binding.epoch)
  local tokens = Residency.own_tokens(binding)
  tx.known_families[binding.family] = nil
  if redis.call('HINCRBY', family, name, -1) <= 0 then
    redis.call('HDEL', family, name)
    tokens = tokens + binding.shared
    if redis.call('HLEN', family) == 1 then redis.call('DEL', family) end
  end
  change(tx, binding, -tokens, -binding.growth)
  redis.call('ZREM', tx.key:awaySessions(binding.serverId, binding.epoch), session_id)
end

-- Gives up the context of a session until its next turn. The caller saves the binding.
function Residency.pause(tx, session_id, binding)
  Residency.leave(tx, session_id, binding)
  binding.state = BindingRecord.PAUSED
  redis.call('ZADD', tx.key.pausedSessions, Format.integer(tx.now), session_id)
end

local function note_gap(tx, binding)
  learn(tx, 'gap' .. bin_of(tx.now - binding.sinceMs, 0, MAX_GAP_BIN))
end

-- Notes that the next turn of a paused session waits. True when it did not wait before.
function Residency.await(tx, binding)
  if binding.state ~= BindingRecord.PAUSED then return false end
  note_gap(tx, binding)
  binding.state, binding.sinceMs = BindingRecord.WAITING, tx.now
  return true
end

local function wanted_context(item, binding)
  local context = item.contextTokens or binding.context
  -- Turns at the same time have most of their context in common: the longest counts.
  return binding.leases > 0 and math.max(binding.context, context) or context
end

-- The next turn of a session that is resident on the server of its binding.
function Residency.go_on(tx, binding, item)
  if binding.leases == 0 then note_gap(tx, binding) end
  Residency.set_context(tx, binding, wanted_context(item, binding), true)
end

-- Counts the first lease of the session on a server, after another server, a pause or no turn at all. `binding`:
-- the new binding; `before`: the binding until now, or nil; `parent`: the binding of the named parent, or nil.
function Residency.begin_call(tx, session_id, binding, before, item, parent)
  local was_counted = before and before.context
  if was_counted and BindingRecord.is_resident(before) then
    Residency.leave(tx, session_id, before)
  elseif was_counted then
    redis.call('ZREM', tx.key.pausedSessions, session_id)
  end
  if not tx.admits_by_kv then return end
  if not was_counted then
    begin(tx, binding, session_id, item, parent)
    return Residency.enter(tx, binding, true)
  end
  binding.context, binding.shared, binding.growth = before.context, before.shared, before.growth
  binding.state, binding.sinceMs = BindingRecord.PAUSED, before.sinceMs
  binding.family, binding.parent = before.family, before.parent
  if before.leases == 0 and before.state ~= BindingRecord.WAITING then note_gap(tx, before) end
  Residency.set_context(tx, binding, wanted_context(item, before), true)
  Residency.enter(tx, binding, true)
end

-- Ends a call of the session, which has generated `tokens`. `binding.leases` is the number of calls that still run.
function Residency.end_call(tx, session_id, binding, lease, tokens)
  if not binding.context then return end
  local context = (lease.contextTokens or binding.context) + (tokens or 0)
  Residency.set_context(tx, binding, math.max(binding.context, context))
  if binding.leases > 0 or binding.state == BindingRecord.WAITING then return end
  binding.sinceMs = tx.now
  if BindingRecord.is_resident(binding) then
    redis.call('ZADD', tx.key:awaySessions(binding.serverId, binding.epoch), tx.now_text, session_id)
  end
end

-- Counts the context of a session no longer.
function Residency.drop(tx, session_id, binding)
  if not binding.context then return end
  if BindingRecord.is_resident(binding) then
    Residency.leave(tx, session_id, binding)
  else
    redis.call('ZREM', tx.key.pausedSessions, session_id)
  end
  binding.context, binding.state = nil, nil
end

-- Counts the context of an ended session no longer, and records its size.
function Residency.forget(tx, session_id, binding)
  if binding.context then learn(tx, 'ended' .. bin_of(binding.context, MIN_BIN, MAX_BIN)) end
  Residency.drop(tx, session_id, binding)
end

-- Moves the context of a binding to another server epoch.
function Residency.move(tx, session_id, binding, server)
  local is_resident = binding.context and BindingRecord.is_resident(binding)
  if is_resident then Residency.leave(tx, session_id, binding) end
  binding.serverId, binding.epoch = server.id, server.epoch
  if is_resident then Residency.enter(tx, binding) end
end

function Residency.save(tx)
  local sums = rawget(tx, 'kv_sums')
  if sums then
    local kept, gone = {}, {}
    for name, one in pairs(sums) do
      if one.isChanged and one.tokens == 0 and one.growth == 0 then
        gone[#gone + 1] = name
      elseif one.isChanged then
        kept[#kept + 1], kept[#kept + 2] = name, struct.pack(SUMS, one.tokens, one.growth)
      end
      one.isChanged = false
    end
    Hashes.write(tx.key.serverKv, kept, gone)
  end
  for field, count in pairs(rawget(tx, 'learned') or {}) do
    redis.call('HINCRBY', tx.key.sessionCounts, field, count)
  end
  tx.learned = nil
end

return Residency

--- @include "../../includes/keys"
--- @include "../../includes/clock"
--- @include "settings"
--- @include "load"
--- @include "server-hash"
-- Servers as this script sees them: a hash is read once; the load of a server is the number of its leases.
local known_servers = {}

local function server_of(id)
  local known = known_servers[id]
  if known ~= nil then return known or nil end
  local server = read_server(id)
  known_servers[id] = server or false
  if not server then return nil end
  server.chosen = tonumber(redis.call('HGET', key.serverChosen, id) or nil) or 0
  server.load = redis.call('SCARD', key.serverLeases(id, server.epoch))
  return server
end

local function labels_of(server)
  if not server.labels then
    local packed = redis.call('HGET', key.server(server.id), 'labels')
    server.labels = packed and cjson.decode(packed) or {}
  end
  return server.labels
end

-- What its engine is known not to have: feature -> true.
local function lacks_of(server)
  if not server.lacks then
    server.lacks = {}
    for feature in string.gmatch(redis.call('HGET', key.server(server.id), 'lacks') or '', '%a+') do
      server.lacks[feature] = true
    end
  end
  return server.lacks
end

-- `lacks`: names with commas between. Servers that lack a feature are counted, so that what none has is known at once.
local function set_lacks(id, lacks)
  for feature in string.gmatch(redis.call('HGET', key.server(id), 'lacks') or '', '%a+') do
    if redis.call('HINCRBY', key.lackingServers, feature, -1) == 0 then redis.call('HDEL', key.lackingServers, feature) end
  end
  for feature in string.gmatch(lacks, '%a+') do redis.call('HINCRBY', key.lackingServers, feature, 1) end
  set_server(id, 'lacks', lacks)
end

-- The weight-version gate: a server that reports another version than the pool wants takes no leases. While the weights
-- change those that have the coming version pass too, so that they stand ready at the commit.
local function is_quarantined(server)
  local wanted = number_setting('requiredWeightVersion')
  if wanted == nil or server.weightVersion == wanted then return false end
  return server.weightVersion ~= number_setting('syncing')
end

local function is_usable(server) return takes_leases(server) and not is_quarantined(server) end

-- What a person sees. `state` in the hash is only what was heard of the server; what was asked of it stands beside.
local function shown_state(server)
  if server.state == 'failed' then return 'failed' end
  if server.drainUntilMs then return 'draining' end
  if server.cordoned then return 'cordoned' end
  if is_quarantined(server) then return 'quarantined' end
  return server.state
end

-- Time does not pass in a script.
local script_ms
local function script_now()
  script_ms = script_ms or now_ms()
  return script_ms
end

-- Most leases now: a new start grows to its capacity in slowStartMs, and adaptive concurrency may lower it.
-- As slowStartCapacity in libs/policies.
local function capacity(server)
  local most = server.maxInflight
  if server.limit then most = math.min(most, server.limit) end
  local slow_start = number_setting('slowStartMs') or 0
  if slow_start > 0 and server.startedAtMs then
    local age = math.max(0, script_now() - server.startedAtMs)
    if age < slow_start then
      local first = number_setting('slowStartFraction') or 0.1
      local share = first + (1 - first) * (age / slow_start)
      most = math.min(most, math.max(1, math.floor(server.maxInflight * share)))
    end
  end
  return most
end

local function has_room(server)
  return is_usable(server) and server.load < capacity(server)
end

-- Puts the server where its state and load say: least loaded first, among equals the one chosen longest ago.
local function rescore(server)
  forget_order()
  if has_room(server) then place_scores({ server }) else withdraw_score(server.id) end
end

-- Loads move often in one script: scores are written when they are read from Redis again, or at the end.
local moved_servers = {}
local function rescore_later(server)
  forget_order()
  moved_servers[server.id] = server
end
local function write_scores()
  if next(moved_servers) == nil then return end
  local placed = {}
  for id, server in pairs(moved_servers) do
    if has_room(server) then placed[#placed + 1] = server else withdraw_score(id) end
  end
  moved_servers = {}
  place_scores(placed)
end

-- After a change of state: also says whether the pool has a server at all, and lets sessions of a lost one move.
local function publish_state(server)
  set_server(server.id, 'state', server.state, 'held', server.held and '1' or '0')
  if server.state ~= 'pending' then redis.call('ZREM', key.pendingServers, server.id) end
  if is_usable(server) then
    redis.call('SADD', key.usableServers, server.id)
  else
    redis.call('SREM', key.usableServers, server.id)
    redis.call('SADD', key.rehomedLanes, server.id)
  end
  place_version(server, is_usable(server))
  rescore(server)
end

-- A new start of the engine: caches are cold and the load grows from there.
local function begin_slow_start(server)
  server.startedAtMs = script_now()
  set_server(server.id, 'startedAtMs', string.format('%.0f', server.startedAtMs))
  local slow_start = number_setting('slowStartMs') or 0
  if slow_start > 0 then
    redis.call('ZADD', key.warmingServers, string.format('%.0f', server.startedAtMs + slow_start), server.id)
  end
end

-- The leases of this epoch count no more; the sweeper returns them.
local function void_server_epoch(id, epoch)
  redis.call('SADD', key.voidLeaseEpochs, 'server:' .. id .. ':' .. epoch)
end

-- The weights it has now, by the word of its engine or its trainer.
local function set_version(server, version)
  server.weightVersion = version
  set_server(server.id, 'weightVersion', string.format('%.0f', version))
  unset_server(server.id, 'versionBefore')
end

-- Leases and sessions of its epoch are void, and it takes none until it is heard of again (or, fenced, starts anew). It may
-- have restarted by then: its weights are unknown until somebody names them, or its engine turns out to be the same start.
local function fail_server(server, new_epoch)
  void_server_epoch(server.id, server.epoch)
  if server.weightVersion > 0 then
    local before = string.format('%.0f', server.weightVersion)
    set_version(server, 0)
    set_server(server.id, 'versionBefore', before)
  end
  unset_server(server.id, 'engineVersion')
  server.epoch = new_epoch
  server.load = 0
  server.state = 'failed'
  server.held = false
  set_server(server.id, 'epoch', server.epoch)
  redis.call('ZREM', key.watchedServers, server.id)
  publish_state(server)
end

-- Its epoch was taken from it by name: only a new start brings it back.
local function is_fenced(server) return redis.call('HEXISTS', key.server(server.id), 'fenced') == 1 end

-- Out of every index; leases and sessions are void at once.
local function forget_server(server)
  void_server_epoch(server.id, server.epoch)
  set_lacks(server.id, '')
  delete_server(server.id)
  forget_order()
  for _, index in ipairs({ 'servers', 'watchedServers', 'pendingServers', 'eligible', 'warmingServers', 'drainingServers' }) do
    redis.call('ZREM', key[index], server.id)
  end
  forget_place(server)
  redis.call('HDEL', key.serverFailures, server.id)
  redis.call('SREM', key.usableServers, server.id)
  redis.call('SADD', key.rehomedLanes, server.id)
  known_servers[server.id] = false
  moved_servers[server.id] = nil
end

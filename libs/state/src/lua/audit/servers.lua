--[[ One page of the servers against the indexes of those that take leases and have room; or one page of such an index
against the servers.
ARGV[1] JSON: {index: 'servers' | 'eligible' | 'usableServers' | 'watchedServers' | 'drainingServers' |
  'warmingServers' | 'serverTraits'; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       loads       list of [serverId, epoch, number of leases], when the index is `servers`
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../routing/includes/leases"
--- @include "includes/findings"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local SCANS = { usableServers = 'SSCAN', serverTraits = 'HSCAN' }
local scan = SCANS[args.index] or 'ZSCAN'
local page = redis.call(scan, key[args.index], args.cursor, 'COUNT', PAGE)
local loads = {}

local function is_warming(server)
  return redis.call('ZSCORE', key.warmingServers, server.id) ~= false
end

local function are_traits_true(server)
  local traits = traits_of(server.id)
  for _, trait in ipairs(traits) do
    if redis.call('SISMEMBER', key.serversWith(trait), server.id) == 0 then return false end
  end
  return redis.call('HGET', key.serverTraits, server.id) == table.concat(traits, '\n')
    and redis.call('SISMEMBER', key.serverBases, traits[1]) == 1
end

local function check_server(server)
  local usable = redis.call('SISMEMBER', key.usableServers, server.id) == 1
  local score = redis.call('ZSCORE', key.eligible, server.id)
  local wrong = {}
  if usable ~= is_usable(server) then table.insert(wrong, 'server-usable') end
  -- In slow start the room grows by itself, and the index follows a little later.
  if (score ~= false) ~= has_room(server) and not is_warming(server) then table.insert(wrong, 'server-eligible') end
  if score and policy_in_force() == 'least-inflight' and not setting('nextPolicy')
    and tonumber(score) ~= score_of(server, 'least-inflight') then
    table.insert(wrong, 'server-score')
  end
  if not are_traits_true(server) then
    table.insert(wrong, 'server-traits')
    if args.repair then
      forget_traits(server.id)
      save_traits(server.id)
    end
  end
  if #wrong > 0 and args.repair then publish_state(server) end
  for _, check in ipairs(wrong) do
    found(check, server.id, string.format('%s, %d leases, score %s', shown_state(server), server.load, score or 'none'),
      args.repair)
  end
  table.insert(loads, { server.id, server.epoch, server.load })
end

local function leave_index(id)
  if scan == 'HSCAN' then return forget_traits(id) end
  redis.call(scan == 'SSCAN' and 'SREM' or 'ZREM', key[args.index], id)
end

for position = 1, #page[2], scan == 'SSCAN' and 1 or 2 do
  local id = page[2][position]
  local server = server_of(id)
  if not server then
    if args.repair then leave_index(id) end
    found('index-without-server', id, args.index, args.repair)
  elseif args.index == 'servers' then
    check_server(server)
  end
end
return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. encode_list(findings) .. ',"loads":'
  .. encode_list(loads) .. '}'

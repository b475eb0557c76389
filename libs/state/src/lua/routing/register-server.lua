--[[ Registers a server, or confirms it: the same instanceId keeps epoch, leases and sessions; another or an unknown one
is a new epoch that voids them. Counts as a heartbeat, so the server is ready at once; new room goes to waiters.
ARGV[1] JSON:
  serverId, endpoint, dialect, maxInflight, weight   as in server.register, defaults filled in
  weightVersion?   absent: as it was, for the same start of the server, else 0
  instanceId?, model?, capabilities? (JSON text)
  mostSessions     number: as in acquire
Reply: serverId, epoch, state; answers, servers, more as in routing/release
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])
local now = now_ms()
local id = args.serverId
local known = server_of(id)
local instance_id = optional(args.instanceId)
local same_start = known and instance_id and known.instanceId == instance_id
local epoch = same_start and known.epoch or next_server_epoch()
local weight_version = optional(args.weightVersion) or (same_start and known.weightVersion) or 0
if known and not same_start then void_server_epoch(id, known.epoch) end
if not same_start then redis.call('DEL', key.server(id)) end

redis.call('HSET', key.server(id), 'epoch', epoch, 'state', 'ready', 'endpoint', args.endpoint, 'dialect', args.dialect,
  'maxInflight', args.maxInflight, 'weight', tostring(args.weight), 'weightVersion', weight_version)
for _, field in ipairs({ 'instanceId', 'model', 'capabilities' }) do
  local value = optional(args[field])
  if value then
    redis.call('HSET', key.server(id), field, value)
  else
    redis.call('HDEL', key.server(id), field)
  end
end
redis.call('ZADD', key.servers, string.format('%.0f', now), id)
redis.call('ZADD', key.watchedServers, string.format('%.0f', now), id)
known_servers[id] = nil
local server = server_of(id)
publish_state(server)

local answers, servers = {}, {}
local more = grant_waiters({ id }, now, args.mostSessions, answers, servers)
save_changes()
return '{"serverId":' .. cjson.encode(id) .. ',"epoch":' .. string.format('%.0f', epoch) .. ',"state":"ready"'
  .. ',"answers":' .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers)
  .. ',"more":' .. tostring(more) .. '}'

--[[ Servers that were heard of: by their own heartbeat or because their endpoint answered a probe. Makes pending
and suspect ones ready, unless the breaker holds them; a failed one comes back under the epoch it was given when it failed,
unless it is fenced.
ARGV[1] JSON:
  serverIds        list of string, at most 128
  epoch?           string: of a server's own heartbeat (then one serverId); a probe gives none
  weightVersion?   number: of a server's own heartbeat: the weights it has now
  mostSessions     number: as in acquire
Reply: states      object: serverId -> state; an unknown one is missing
       revived     list of serverId that were failed
       requiredWeightVersion?   number: what a server must have to take leases
       answers, servers, more as in routing/release
Errors: SERVER_NOT_FOUND, FENCED (the epoch is not the current one), both only when `epoch` is given.
Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
--- @include "includes/breaker"
local args = cjson.decode(ARGV[1])
local now = now_ms()
local epoch = optional(args.epoch)
local weight_version = optional(args.weightVersion)
if epoch then
  local server = server_of(args.serverIds[1])
  if not server then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
  -- A failed server has a new epoch already, which its own heartbeat cannot know before it has registered again.
  if server.epoch ~= epoch then return fail('FENCED', 'The epoch of the server is not the current one', 'epoch') end
  if server.state == 'failed' and is_fenced(server) then
    return fail('FENCED', 'The server was fenced and must start anew', 'epoch')
  end
end

local states, revived, changed = {}, {}, {}
local known_traits = args.serverIds[1] and redis.call('HMGET', key.serverTraits, unpack(args.serverIds))
for index, id in ipairs(args.serverIds) do
  local server = server_of(id)
  -- It was registered, or changed, by a version without them.
  local traits = server and known_traits[index]
  if server and (not traits or tonumber(string.match(traits, '^@(%d+)|')) ~= server.weightVersion) then save_traits(id) end
  if server and server.state == 'failed' and is_fenced(server) then
    redis.call('ZADD', key.servers, string.format('%.0f', now), id)
    states[id] = 'failed'
  elseif server then
    redis.call('ZADD', key.servers, string.format('%.0f', now), id)
    redis.call('ZADD', key.watchedServers, string.format('%.0f', now), id)
    if weight_version and weight_version ~= server.weightVersion then
      set_version(server, weight_version)
      publish_state(server)
      table.insert(changed, id)
    end
    local stays_suspect = server.state == 'suspect' and is_broken(server)
    if server.state == 'pending' or (server.state == 'suspect' and not stays_suspect) or server.state == 'failed' then
      if server.state == 'failed' then table.insert(revived, id) end
      if server.state ~= 'suspect' then begin_slow_start(server) end
      server.state = 'ready'
      server.held = false
      publish_state(server)
      table.insert(changed, id)
    end
    -- Settings may have changed what it may take.
    if is_usable(server) ~= (redis.call('SISMEMBER', key.usableServers, id) == 1) then
      publish_state(server)
      table.insert(changed, id)
    else
      rescore_later(server)
    end
    states[id] = shown_state(server)
  end
end
local answers, servers = {}, {}
local more = grant_waiters(changed, now, args.mostSessions, answers, servers)
save_changes()
return '{"states":' .. cjson.encode(states) .. ',"revived":' .. encode_list(revived) .. ',"answers":'
  .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more)
  .. (setting('requiredWeightVersion') and ',"requiredWeightVersion":' .. setting('requiredWeightVersion') or '') .. '}'

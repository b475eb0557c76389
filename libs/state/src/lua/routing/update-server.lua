--[[ Changes what a server was registered with; its leases, sessions and epoch stay. New room goes to waiters.
ARGV[1] JSON:
  serverId
  maxInflight?, weight?, weightVersion?, labels?, capabilities? (JSON text)   what is absent stays as it is
  lacks?           string: features its engine does not have, commas between
  epoch?           string: only while this is its epoch
  said?            {startedAtSeconds?, weightVersion?}: what its engine says of itself (includes/engine-word)
  newEpoch         string: the epoch that begins if that is a restart
  mostSessions     number: as in acquire
Reply: serverId, epoch, state, inflight, capacity, drainUntilMs?; answers, servers, more as in routing/release
Errors: SERVER_NOT_FOUND, FENCED. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/changed-server"
--- @include "includes/engine-word"
local args = cjson.decode(ARGV[1])
local server = server_of(args.serverId)
if not server then return fail('SERVER_NOT_FOUND', 'No such server in the pool', 'serverId') end
if optional(args.epoch) and args.epoch ~= server.epoch then return fail('FENCED', 'The server has another epoch', 'epoch') end
local now = now_ms()
if optional(args.said) then heed(server, args.said, args.newEpoch, now) end
if optional(args.weightVersion) then set_version(server, args.weightVersion) end
for _, field in ipairs({ 'maxInflight', 'weight' }) do
  local value = optional(args[field])
  if value then
    server[field] = value
    set_server(server.id, field, tostring(value))
  end
end
-- A capacity set by hand is not to be lowered by what was learned under another one.
if optional(args.maxInflight) then
  server.limit = nil
  unset_server(server.id, 'limit')
end
for _, field in ipairs({ 'labels', 'capabilities' }) do
  if optional(args[field]) then set_server(server.id, field, args[field]) end
end
if optional(args.lacks) then
  set_lacks(server.id, args.lacks)
  server.lacks = nil
end
return changed_server(server, now, args.mostSessions)

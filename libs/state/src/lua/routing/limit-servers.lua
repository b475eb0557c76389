--[[ Sets how many leases servers may have now, below their maxInflight: what adaptive concurrency decided.
ARGV[1] JSON:
  limits           list of {serverId, epoch, from, to}, at most 128; passed over when the epoch or `from` is not current
  mostSessions     number: as in acquire
Reply: limited     list of serverId
       answers, servers, more as in routing/release
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])
local answers, servers, limited = {}, {}, {}
for _, change in ipairs(args.limits) do
  local server = server_of(change.serverId)
  if server and server.epoch == change.epoch and (server.limit or server.maxInflight) == change.from then
    if change.to < server.maxInflight then
      server.limit = change.to
      set_server(server.id, 'limit', string.format('%.0f', change.to))
    else
      server.limit = nil
      unset_server(server.id, 'limit')
    end
    rescore(server)
    table.insert(limited, server.id)
  end
end
local more = grant_waiters(limited, now_ms(), args.mostSessions, answers, servers)
save_changes()
return '{"limited":' .. encode_list(limited) .. ',"answers":' .. encode_list(answers) .. ',"servers":'
  .. cjson.encode(servers) .. ',"more":' .. tostring(more) .. '}'

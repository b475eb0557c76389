--[[ Gives room that is there to those who wait: after an event that made more of it than one script hands out, and
periodically, so that no waiter depends on a single call.
ARGV[1] JSON:
  mostSessions     number: as in acquire
Reply: answers, servers, more as in routing/release.
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])
local answers, servers = {}, {}
local more = false
if redis.call('HLEN', key.acquireWaiters) > 0 then
  local ids = redis.call('ZRANGE', key.eligible, 0, SERVERS_LOOKED_AT - 1)
  more = grant_waiters(ids, now_ms(), args.mostSessions, answers, servers)
end
save_changes()
return '{"answers":' .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers)
  .. ',"more":' .. tostring(more) .. '}'

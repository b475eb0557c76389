--[[ Gives room that is there to those who wait: after an event that made more of it than one script hands out, and
periodically, so that no waiter depends on a single call. It looks at the first servers of the policy's order, and at a
page of the others that moves on with each call: who waits for one of those is found too.
ARGV[1] JSON:
  mostSessions     number: as in acquire
Reply: answers, servers, more as in routing/release.
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])
local answers, servers = {}, {}
local more = false
if redis.call('HLEN', key.acquireWaiters) > 0 then
  local ids = redis.call('ZRANGE', key.eligible, 0, SERVERS_LOOKED_AT - 1)
  local others = redis.call('ZCARD', key.eligible) - SERVERS_LOOKED_AT
  if others > 0 then
    local page = redis.call('HINCRBY', key.meta, 'grantPage', 1) % math.ceil(others / SERVERS_LOOKED_AT)
    local from = SERVERS_LOOKED_AT * (1 + page)
    for _, id in ipairs(redis.call('ZRANGE', key.eligible, from, from + SERVERS_LOOKED_AT - 1)) do table.insert(ids, id) end
  end
  more = grant_waiters(ids, now_ms(), args.mostSessions, answers, servers)
end
save_changes()
return '{"answers":' .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers)
  .. ',"more":' .. tostring(more) .. '}'

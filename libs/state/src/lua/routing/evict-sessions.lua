--[[ Forgets sessions that were idle for too long, or that are more than the pool keeps, at most 128; never one with
leases.
ARGV[1] JSON: {idleMs}: the pool setting `sessionIdleMs` goes before it
Reply: evicted     number
       more        true when there are further ones
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/leases"
local PAGE = 128
local idle_ms = number_setting('sessionIdleMs') or cjson.decode(ARGV[1]).idleMs
local limit = string.format('%.0f', now_ms() - idle_ms)
local idle = redis.call('ZRANGEBYSCORE', key.idleSessions, '-inf', limit, 'LIMIT', 0, PAGE)
local most = number_setting('maxSessions')
if #idle == 0 and most then
  local surplus = redis.call('HLEN', key.sessions) - most
  if surplus > 0 then idle = redis.call('ZRANGE', key.idleSessions, 0, math.min(PAGE, surplus) - 1) end
end
local evicted = evict_sessions(idle)
save_changes()
return '{"evicted":' .. evicted .. ',"more":' .. tostring(#idle == PAGE) .. '}'

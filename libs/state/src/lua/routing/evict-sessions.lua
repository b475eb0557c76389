--[[ Forgets sessions that were idle for too long, at most 128; never one with leases.
ARGV[1] JSON: {idleMs}
Reply: evicted     number
       more        true when there are further ones
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
local PAGE = 128
local limit = string.format('%.0f', now_ms() - cjson.decode(ARGV[1]).idleMs)
local idle = redis.call('ZRANGEBYSCORE', key.idleSessions, '-inf', limit, 'LIMIT', 0, PAGE)
if #idle > 0 then
  redis.call('HDEL', key.sessions, unpack(idle))
  redis.call('ZREM', key.idleSessions, unpack(idle))
end
return '{"evicted":' .. #idle .. ',"more":' .. tostring(#idle == PAGE) .. '}'

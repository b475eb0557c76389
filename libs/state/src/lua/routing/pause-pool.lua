--[[ Pauses a pool, or resumes it. Paused, no lease is granted: acquires that may wait are parked, the others refused;
leases that are there run on. After a resume room goes to those who wait, unless the weights of the pool change just now: then after that.
ARGV[1] JSON:
  paused           boolean
  mostSessions     number: as in acquire
Reply: paused, changed   booleans; answers, servers, more as in routing/release
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "includes/waiters"
local args = cjson.decode(ARGV[1])
local now = now_ms()
local changed = (setting('paused') == '1') ~= args.paused
if args.paused then
  redis.call('HSET', key.settings, 'paused', '1')
else
  redis.call('HDEL', key.settings, 'paused')
end
known_settings = nil
local answers, servers = {}, {}
local more = false
if not args.paused then
  local ids = redis.call('ZRANGE', key.eligible, 0, SERVERS_LOOKED_AT - 1)
  more = grant_waiters(ids, now, args.mostSessions, answers, servers)
end
save_changes()
return '{"paused":' .. tostring(args.paused) .. ',"changed":' .. tostring(changed) .. ',"answers":'
  .. encode_list(answers) .. ',"servers":' .. cjson.encode(servers) .. ',"more":' .. tostring(more) .. '}'

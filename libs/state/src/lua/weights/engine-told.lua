--[[ An engine has been told to pause, or to resume, for a change of weights.
ARGV[1] JSON:
  serverId, syncId   strings
  paused             boolean
  lateMs             number: a pause that was asked for may be on its way for so long; until then a resume is said again
Reply: late   true when it was paused after the change had ended: it must resume
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "includes/weight-sync"
local args = cjson.decode(ARGV[1])
local noted = redis.call('HGET', key.pausedEngines, args.serverId)
local sync_id, state, asked_at = string.match(noted or '', '^([^|]*)|(%a+)|(%d+)$')
local sync = load_sync()
if args.paused then
  local late = not sync or sync.syncId ~= args.syncId
  if not late and sync_id == args.syncId then
    redis.call('HSET', key.pausedEngines, args.serverId, sync_id .. '|paused|' .. asked_at)
  end
  return cjson.encode({ late = late })
end
local is_settled = state == 'paused' or now_ms() - tonumber(asked_at or 0) > args.lateMs
if sync_id == args.syncId and is_settled then redis.call('HDEL', key.pausedEngines, args.serverId) end
return '{"late":false}'

--[[ Sets the number of leases of a session that is off, if nothing has changed since it was counted.
ARGV[1] JSON: {sessionId; packed: the binding that was seen; leases: number counted}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "../includes/clock"
--- @include "../routing/includes/sessions"
local args = cjson.decode(ARGV[1])
if redis.call('HGET', key.sessions, args.sessionId) ~= args.packed then return '{"mended":false}' end
local binding = unpack_binding(args.packed)
binding.leases = args.leases
if binding.leases == 0 and binding.finished then
  forget_session(args.sessionId, binding)
else
  save_binding(args.sessionId, binding)
  if binding.leases == 0 then
    redis.call('ZADD', key.idleSessions, string.format('%.0f', now_ms()), args.sessionId)
  else
    redis.call('ZREM', key.idleSessions, args.sessionId)
  end
end
write_scores()
save_counts()
return '{"mended":true}'

--[[ Ends a session: it is forgotten now, or with its last lease.
ARGV[1] JSON: {sessionId}
Reply: finished    false when there was no such session
Errors: none. Facts: none. ]]
--- @include "../includes/reply"
--- @include "includes/sessions"
local session_id = cjson.decode(ARGV[1]).sessionId
local binding = binding_of(session_id)
if not binding then return '{"finished":false}' end
if binding.leases == 0 then
  redis.call('HDEL', key.sessions, session_id)
  redis.call('ZREM', key.idleSessions, session_id)
else
  binding.finished = true
  save_binding(session_id, binding)
end
return '{"finished":true}'

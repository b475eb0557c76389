--[[ Ends a session: it is forgotten now, or with its last lease.
ARGV[1] JSON: {sessionId}
Reply: finished    false when there was no such session
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/leases"
local session_id = cjson.decode(ARGV[1]).sessionId
local binding = binding_of(session_id)
if not binding then return '{"finished":false}' end
if binding.leases == 0 then
  forget_session(session_id, binding)
else
  binding.finished = true
  save_binding(session_id, binding)
end
save_changes()
return '{"finished":true}'

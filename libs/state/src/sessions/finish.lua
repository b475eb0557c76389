--[[ Ends a session: it is forgotten now, or with its last lease.
ARGV[1] JSON: {sessionId}
Reply: FinishSessionReply
Flags: allow-oom ]]
return function(tx, args)
  local session_id = args.sessionId
  local binding = Sessions.get(tx, session_id)
  if not binding then return '{"finished":false}' end
  if binding.leases == 0 then
    Sessions.forget(tx, session_id, binding)
  else
    binding.finished = true
    Sessions.save(tx, session_id, binding)
  end
  Leases.save(tx)
  return '{"finished":true}'
end

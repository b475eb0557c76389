--[[ Ends a session: it is forgotten now, or with its last lease. KV memory that this frees goes to waiters.
ARGV[1] JSON: {sessionId}
Reply: finished    boolean; false: there is no such session
       answers, servers, more   as in leases/release
Flags: allow-oom ]]
return function(tx, args)
  local session_id = args.sessionId
  local binding = Sessions.get(tx, session_id)
  if not binding then return Waiters.reply(tx, {}, { finished = false }) end
  Sessions.finish(tx, session_id, binding)
  return Waiters.reply(tx, {}, { finished = true })
end

--[[ Sets the number of leases of a session that is off, if nothing has changed since it was counted.
ARGV[1] JSON: {sessionId; packed: the binding that was seen; leases: number counted}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  if redis.call('HGET', tx.key.sessions, args.sessionId) ~= args.packed then return '{"mended":false}' end
  local binding = BindingRecord.unpack(args.packed)
  binding.leases = args.leases
  if binding.leases == 0 and binding.finished then
    Sessions.forget(tx, args.sessionId, binding)
  else
    Sessions.save(tx, args.sessionId, binding)
    if binding.leases == 0 then
      redis.call('ZADD', tx.key.idleSessions, Format.integer(tx.now), args.sessionId)
    else
      redis.call('ZREM', tx.key.idleSessions, args.sessionId)
    end
  end
  Servers.write_scores(tx)
  Loads.save(tx)
  return '{"mended":true}'
end

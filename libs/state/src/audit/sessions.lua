--[[ One page of the sessions, with the set of those that are idle.
ARGV[1] JSON: {cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       sessions    list of [sessionId, packed binding, leases]
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local sessions = {}
  local page = redis.call('HSCAN', tx.key.sessions, args.cursor, 'COUNT', PAGE)
  for index = 1, #page[2], 2 do
    local session_id, packed = page[2][index], page[2][index + 1]
    local binding = BindingRecord.unpack(packed)
    local idle = redis.call('ZSCORE', tx.key.idleSessions, session_id) ~= false
    if not binding.leases then
      Findings.add(tx, 'session-unreadable', session_id, packed)
    else
      if idle ~= (binding.leases <= 0) then
        if args.repair and idle then redis.call('ZREM', tx.key.idleSessions, session_id) end
        if args.repair and not idle then redis.call('ZADD', tx.key.idleSessions, Format.integer(tx.now), session_id) end
        Findings.add(tx, 'session-idle', session_id, packed, args.repair)
      end
      table.insert(sessions, { session_id, packed, binding.leases })
    end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. ',"sessions":'
    .. Reply.list(sessions) .. '}'
end

--[[ Counts the leases of some sessions in one go, over all leases: the last word on a session that seems off. Writes
nothing.
ARGV[1] JSON: {sessionIds: list, at most 128; mostLeases: number: with more nothing is counted, so that it stays short}
Reply: counted     boolean
       counts      list, in the order of the request, of [packed binding or '', leases found]
Errors: none. Facts: none.
Flags: no-writes ]]
return function(tx, args)
  if redis.call('HLEN', tx.key.leases) > args.mostLeases then return '{"counted":false,"counts":[]}' end
  local found, counts = {}, {}
  for _, packed in ipairs(redis.call('HVALS', tx.key.leases)) do
    local session_id = string.match(packed, '^%d+|[^|]*|%w+|[^|]*|%w+|[^|]*|([^|]*)|')
    if session_id then found[session_id] = (found[session_id] or 0) + 1 end
  end
  for index, session_id in ipairs(args.sessionIds) do
    counts[index] = { redis.call('HGET', tx.key.sessions, session_id) or '', found[session_id] or 0 }
  end
  return '{"counted":true,"counts":' .. Reply.list(counts) .. '}'
end

--[[ One page of the sessions; a scan: each one that is there all the time comes at least once. Writes nothing.
ARGV[1] JSON:
  serverId   string or absent: only sessions that are bound to this server
  cursor     string, '0' to begin
Reply: sessions   list of {sessionId, serverId?, serverEpoch?, leases, dpRank?}; no server: bound anew by the next lease
       cursor     string, '0' at the end
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local sessions = {}
  local page = redis.call('HSCAN', tx.key.sessions, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local binding = BindingRecord.unpack(page[2][position + 1])
    local is_bound = binding.epoch ~= BindingRecord.NO_EPOCH
    if not args.serverId or (is_bound and binding.serverId == args.serverId) then
      table.insert(sessions, {
        sessionId = page[2][position], serverId = is_bound and binding.serverId or nil,
        serverEpoch = is_bound and binding.epoch or nil, leases = binding.leases, dpRank = binding.dpRank,
      })
    end
  end
  return '{"sessions":' .. Reply.list(sessions) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end

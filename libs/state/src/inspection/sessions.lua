--[[ One page of the sessions; a scan (Pages.list). Writes nothing.
ARGV[1] JSON: {serverId, cursor, limit}: ListSessionsRequest; serverId or absent: only sessions that are bound to this
  server
Reply: ListSessionsReply; a session without a server is bound by its next lease
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local sessions = {}
  local page, cursor = Pages.list('HSCAN', tx.key.sessions, args.cursor, PAGE, args.limit or PAGE)
  for position = 1, #page, 2 do
    local binding = BindingRecord.unpack(page[position + 1])
    local is_bound = binding.epoch ~= BindingRecord.NO_EPOCH
    if not args.serverId or (is_bound and binding.serverId == args.serverId) then
      table.insert(sessions, {
        sessionId = page[position], serverId = is_bound and binding.serverId or nil,
        serverEpoch = is_bound and binding.epoch or nil, leases = binding.leases, dpRank = binding.dpRank,
        contextTokens = binding.context, parentSessionId = binding.parent ~= '' and binding.parent or nil,
        paused = binding.context and not BindingRecord.is_resident(binding) or nil,
        waiting = binding.state == BindingRecord.WAITING or nil,
      })
    end
  end
  return Reply.object({ sessions = sessions, cursor = cursor })
end

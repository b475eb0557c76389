--[[ One page of the search for the leases under which some requests run. Writes nothing.
ARGV[1] JSON: {requestIds, cursor}   list of string, at most 256; string
Reply: leases   list of RunningLease
       cursor   string
Flags: no-writes ]]
return function(tx, args)
  local LOOKED_AT = 512
  local wanted, leases = {}, {}
  for _, id in ipairs(args.requestIds) do wanted[id] = true end
  local page, cursor = Pages.scan('HSCAN', tx.key.leases, args.cursor, LOOKED_AT)
  for position = 2, #page, 2 do
    if wanted[LeaseRecord.request_of(page[position])] then
      local lease = LeaseRecord.unpack(page[position])
      table.insert(leases, { requestId = lease.requestId, serverId = lease.serverId, epoch = lease.serverEpoch })
    end
  end
  return Reply.object({ leases = leases, cursor = cursor })
end

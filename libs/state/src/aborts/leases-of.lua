--[[ One page of the search for the leases under which some requests run. Writes nothing.
ARGV[1] JSON: {requestIds, cursor}   list of string, at most 256; cursor '0' to begin
Reply: leases   list of RunningLease
       cursor   string, '0' at the end
Flags: no-writes ]]
return function(tx, args)
  local LOOKED_AT = 512
  local wanted, leases = {}, {}
  for _, id in ipairs(args.requestIds) do wanted[id] = true end
  local page = redis.call('HSCAN', tx.key.leases, args.cursor, 'COUNT', LOOKED_AT)
  for position = 2, #page[2], 2 do
    if wanted[LeaseRecord.request_of(page[2][position])] then
      local lease = LeaseRecord.unpack(page[2][position])
      table.insert(leases, { requestId = lease.requestId, serverId = lease.serverId, epoch = lease.serverEpoch })
    end
  end
  return Reply.object({ leases = leases, cursor = page[1] })
end

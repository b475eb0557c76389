--[[ Checks again one page of leases whose holders were asked to transfer them. A lease that has moved or ended, or
whose holder or target has another epoch by now, is done. After the deadline a holder is asked no more, and its call
continues where it is.
ARGV[1] JSON: {cursor, deadlineMs}   string, number
Reply: RepeatedTransfers
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local leases, expired = {}, 0
  local page, cursor = Pages.scan('HSCAN', tx.key.movingLeases, args.cursor, PAGE)
  for position = 1, #page, 2 do
    local lease_id, move = page[position], Moves.unpack_transfer(page[position + 1])
    local lease = LeaseTable.named(tx, lease_id)
    local is_held = lease and lease.serverId ~= move.targetServerId
      and WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch)
      and (not move.targetEpoch or (ServerHash.read(tx, move.targetServerId) or {}).epoch == move.targetEpoch)
    if is_held and tx.now - move.startedAtMs <= args.deadlineMs then
      table.insert(leases, Moves.transfer(lease_id, lease, move))
    else
      redis.call('HDEL', tx.key.movingLeases, lease_id)
      if is_held then
        Moves.note(tx, move.planId, lease_id, 'expired')
        expired = expired + 1
      end
    end
  end
  return Reply.object({ leases = leases, expired = expired, cursor = cursor })
end

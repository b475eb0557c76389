--[[ Looks again at one page of leases whose holders were told to transfer them: what has moved or ended, or has another
holder or target by now, is done; a holder that has had its time is told no more, and its call goes on where it is.
ARGV[1] JSON: {cursor, deadlineMs}   string, '0' to begin; number
Reply: leases    list of {planId, leaseId, workerId, workerEpoch, targetServerId, targetEpoch?}
       expired   number of moves given up
       cursor    string, '0' at the end
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local leases, expired = {}, 0
  local page = redis.call('HSCAN', tx.key.movingLeases, args.cursor, 'COUNT', PAGE)
  for position = 1, #page[2], 2 do
    local lease_id = page[2][position]
    local plan_id, target, epoch, started_at = string.match(page[2][position + 1], '^([^|]*)|([^|]*)|(%w*)|(%d+)$')
    local lease = LeaseTable.named(tx, lease_id)
    local is_held = lease and lease.serverId ~= target
      and WorkerFence.is_current(tx, lease.workerId, lease.workerEpoch)
      and (epoch == '' or (ServerHash.read(tx, target) or {}).epoch == epoch)
    local is_overdue = tx.now - tonumber(started_at) > args.deadlineMs
    if is_held and not is_overdue then
      table.insert(leases, { planId = plan_id, leaseId = lease_id, workerId = lease.workerId,
        workerEpoch = lease.workerEpoch, targetServerId = target, targetEpoch = epoch ~= '' and epoch or nil })
    else
      redis.call('HDEL', tx.key.movingLeases, lease_id)
      if is_held then
        Moves.note(tx, plan_id, lease_id, 'expired')
        expired = expired + 1
      end
    end
  end
  return '{"leases":' .. Reply.list(leases) .. ',"expired":' .. expired .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end

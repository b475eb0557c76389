--[[ Moves a live lease to a named server: in one step the load of the old server falls, its room goes to waiters, and
the load of the target rises. The lease keeps its id and its holder; its session and group go with it.
ARGV[1] JSON: {transferId, acquireId, seq, workerId, workerEpoch, targetServerId, targetEpoch, rememberMs}:
  TransferEntry. A repeat with the transferId gets the first answer for rememberMs. With targetEpoch, the lease moves
  only while the target has this epoch
Reply: granted     the lease as in acquire, branch `transferred`
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
       answers, more   as in leases/release; absent in a repeat
       waiterServers   object: the servers of `answers`
Errors, by which nothing changes: WORKER_NOT_FOUND, FENCED (the worker epoch, the lease's server epoch or targetEpoch is
  expired), LEASE_NOT_FOUND (unknown, returned, or another worker's), SERVER_NOT_FOUND, VALIDATION_FAILED (the lease is
  on the target already; the transferId was used for another transfer), POOL_PAUSED, SERVER_NOT_READY, SERVER_FULL,
  SERVER_UNSUITABLE (field: the constraint of the acquire that the target does not meet).
Flags: allow-oom ]]
return function(tx, args)
  local now = tx.now
  if not Leases.is_current_worker(tx, args.workerId, args.workerEpoch) then
    return Reply.fail(WorkerFence.expired_worker(tx, args.workerId))
  end
  local what = args.acquireId .. '|' .. args.targetServerId
  local first = redis.call('GET', tx.key:transfer(args.transferId))
  if first then
    local known, answer = string.match(first, '^([^\n]*)\n(.*)$')
    if known ~= what then
      return Reply.fail('VALIDATION_FAILED', 'The transferId was used for another transfer', 'transferId')
    end
    return answer
  end
  local packed = LeaseTable.packed(tx, args.acquireId)
  local lease = packed and LeaseRecord.unpack(packed)
  local seq = args.seq
  if not lease or (seq and seq ~= lease.seq) or lease.workerId ~= args.workerId
    or lease.workerEpoch ~= args.workerEpoch then
    return Reply.fail('LEASE_NOT_FOUND', 'No such lease of this worker', 'leaseId')
  end
  if not Leases.is_on_current_epoch(tx, lease) then
    return Reply.fail('FENCED', 'The lease has expired: its server has restarted', 'leaseId')
  end
  local target = Servers.get(tx, args.targetServerId)
  if not target then return Reply.fail('SERVER_NOT_FOUND', 'No such server in the pool', 'targetServerId') end
  local target_epoch = args.targetEpoch
  if target_epoch and target_epoch ~= target.epoch then
    return Reply.fail('FENCED', 'The epoch of the target is not the current one', 'targetEpoch')
  end
  if target.id == lease.serverId then
    return Reply.fail('VALIDATION_FAILED', 'The lease is on this server already', 'targetServerId')
  end
  local paused = Settings.pause_reason(tx)
  if paused then
    return Reply.fail('POOL_PAUSED', 'The pool is paused, or its weights are being changed', nil, 250,
      { reason = paused })
  end
  if not Servers.is_usable(tx, target) then
    return Reply.fail('SERVER_NOT_READY', 'The target accepts no leases: it is ' .. Servers.shown_state(tx, target),
      'targetServerId')
  end
  local unmet = lease.asked and Restrictions.unmet(tx, target, cjson.decode(lease.asked))
  if unmet then
    return Reply.fail('SERVER_UNSUITABLE', 'The target does not meet the constraints of the acquire', unmet)
  end
  if not Servers.has_room(tx, target) then
    return Reply.fail('SERVER_FULL', 'The target has no room', 'targetServerId')
  end

  local source = Servers.get(tx, lease.serverId)
  local order = Order.read(tx, Order.BEST)
  local choice = { branch = 'transferred', key = tx.policy.score(tx, target), best = Order.best(order),
    eligible = order.count }
  local line = MoveLease.move(tx, args.acquireId, lease, target, choice)
  local servers, waiter_servers, answers = {}, {}, {}
  local moved = Leases.granted(tx, lease, target, line, choice, servers)
  moved.seq = lease.seq
  local granted = cjson.encode(moved)
  local answer = '{"granted":' .. granted .. ',"servers":' .. Reply.servers(servers)
  redis.call('SET', tx.key:transfer(args.transferId), what .. '\n' .. answer .. '}', 'PX', args.rememberMs)
  local more = Waiters.grant(tx, { source.id }, answers, waiter_servers)
  Leases.save(tx)
  return answer .. ',"answers":' .. Reply.list(answers) .. ',"waiterServers":' .. Reply.servers(waiter_servers)
    .. ',"more":' .. tostring(more) .. '}'
end

--[[ One page of leases, the oldest of the page first, or one lease; a scan (Pages.list).
ARGV[1] JSON: {serverId, workerId, cursor, limit; leaseId: this lease only}: ListLeasesRequest. Without the three
  ids: all leases of the pool
Reply: ListLeasesReply
Errors: SERVER_NOT_FOUND, WORKER_NOT_FOUND, LEASE_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local server_id, worker_id = args.serverId, args.workerId
  local now = tx.now
  local leases = {}

  local function add(acquire_id, lease)
    table.insert(leases, {
      leaseId = string.format('%.0f.%s', lease.seq, acquire_id), requestId = lease.requestId, attempt = lease.attempt,
      serverId = lease.serverId, serverEpoch = lease.serverEpoch, workerId = lease.workerId,
      workerEpoch = lease.workerEpoch, sessionId = lease.sessionId, groupId = lease.groupId,
      ageMs = math.max(0, now - lease.grantedAtMs),
    })
  end

  if args.leaseId then
    local lease = LeaseTable.named(tx, args.leaseId)
    if not lease then return Reply.fail('LEASE_NOT_FOUND', 'There is no lease ' .. args.leaseId, 'leaseId') end
    add(string.match(args.leaseId, '^%d+%.(.+)$'), lease)
    return Reply.object({ leases = leases })
  end
  local index
  if server_id then
    local server = ServerHash.read(tx, server_id)
    if not server then return Reply.fail('SERVER_NOT_FOUND', 'There is no server ' .. server_id, 'serverId') end
    index = tx.key:serverLeases(server_id, server.epoch)
  elseif worker_id then
    local epoch, no_worker = WorkerFence.live_epoch(tx, worker_id)
    if not epoch then return no_worker end
    index = tx.key:workerLeases(worker_id, epoch)
  end

  local page, cursor = Pages.list(index and 'SSCAN' or 'HSCAN', index or tx.key.leases, args.cursor, PAGE,
    args.limit or PAGE)
  for position = 1, #page, index and 1 or 2 do
    local packed = page[position + 1]
    if index then packed = redis.call('HGET', tx.key.leases, page[position]) end
    if packed then add(page[position], LeaseRecord.unpack(packed)) end
  end
  table.sort(leases, function(one, other) return one.ageMs > other.ageMs end)
  return Reply.object({ leases = leases, cursor = cursor })
end

--[[ One page of leases, or one lease. A scan: each lease that lives all the time comes at least once.
ARGV[1] JSON:
  serverId   string or absent: those on its current epoch
  workerId   string or absent: those of its live epoch
  leaseId    string or absent: this lease only; without the three, those of the pool
  cursor     string, '0' to begin
Reply: leases   list of LeaseStatus of the protocol
       cursor   string, '0' at the end
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
    return '{"leases":' .. Reply.list(leases) .. ',"cursor":"0"}'
  end
  local index
  if server_id then
    local server = ServerHash.read(tx, server_id)
    if not server then return Reply.fail('SERVER_NOT_FOUND', 'There is no server ' .. server_id, 'serverId') end
    index = tx.key:serverLeases(server_id, server.epoch)
  elseif worker_id then
    local epoch = redis.call('HGET', tx.key:worker(worker_id), 'liveEpoch')
    if not epoch then
      return Reply.fail('WORKER_NOT_FOUND', 'The worker ' .. worker_id .. ' has no live epoch', 'workerId')
    end
    index = tx.key:workerLeases(worker_id, epoch)
  end

  local page
  if index then
    page = redis.call('SSCAN', index, args.cursor, 'COUNT', PAGE)
    for _, acquire_id in ipairs(page[2]) do
      local packed = redis.call('HGET', tx.key.leases, acquire_id)
      if packed then add(acquire_id, LeaseRecord.unpack(packed)) end
    end
  else
    page = redis.call('HSCAN', tx.key.leases, args.cursor, 'COUNT', PAGE)
    for position = 1, #page[2], 2 do add(page[2][position], LeaseRecord.unpack(page[2][position + 1])) end
  end
  return '{"leases":' .. Reply.list(leases) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end

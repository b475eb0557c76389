--[[ One page of the leases against their indexes: the set of their server, the set of their worker epoch, the list of
their request, the epochs themselves and the session. The lease is the truth.
ARGV[1] JSON: {cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       leases      list of [acquireId, seq, serverId, serverEpoch, workerId, workerEpoch, sessionId or '',
                   groupId or '', contextTokens or 0]
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local leases = {}

  local function check_index(check, index, acquire_id)
    if redis.call('SISMEMBER', index, acquire_id) == 1 then return end
    if args.repair then redis.call('SADD', index, acquire_id) end
    Findings.add(tx, check, acquire_id, index, args.repair)
  end

  local function check_request(request_id, acquire_id)
    local held = redis.call('HGET', tx.key.requestLeases, request_id)
    if held == RequestLeases.IN_SET and redis.call('SISMEMBER', tx.key:leasesOfRequest(request_id),
      acquire_id) == 1 then return end
    if held and string.find('|' .. held .. '|', '|' .. acquire_id .. '|', 1, true) then return end
    if args.repair then RequestLeases.change(tx, request_id, acquire_id, true) end
    Findings.add(tx, 'lease-not-of-request', acquire_id, request_id, args.repair)
  end

  -- A lease of a void epoch is the sweeper's; without the mark nobody would return it.
  local function check_epoch(check, is_current, owner, acquire_id)
    if is_current or redis.call('SISMEMBER', tx.key.voidLeaseEpochs, owner) == 1 then return end
    if args.repair then redis.call('SADD', tx.key.voidLeaseEpochs, owner) end
    Findings.add(tx, check, acquire_id, owner, args.repair)
  end

  local page = redis.call('HSCAN', tx.key.leases, args.cursor, 'COUNT', PAGE)
  for index = 1, #page[2], 2 do
    local acquire_id = page[2][index]
    local lease = LeaseRecord.unpack(page[2][index + 1])
    if not lease.seq then
      Findings.add(tx, 'lease-unreadable', acquire_id, page[2][index + 1])
    else
      check_index('lease-not-in-set-of-server', tx.key:serverLeases(lease.serverId, lease.serverEpoch), acquire_id)
      check_request(lease.requestId, acquire_id)
      check_index('lease-not-in-set-of-worker', tx.key:workerLeases(lease.workerId, lease.workerEpoch), acquire_id)
      check_epoch('lease-of-lost-server', Leases.is_on_current_epoch(tx, lease), 'server:' .. lease.serverId .. ':'
        .. lease.serverEpoch,
        acquire_id)
      check_epoch('lease-of-lost-worker', Leases.is_current_worker(tx, lease.workerId, lease.workerEpoch),
        'worker:' .. lease.workerId .. ':' .. lease.workerEpoch, acquire_id)
      if lease.sessionId and redis.call('HEXISTS', tx.key.sessions, lease.sessionId) == 0 then
        Findings.add(tx, 'lease-of-lost-session', acquire_id, lease.sessionId)
      end
      table.insert(leases, { acquire_id, lease.seq, lease.serverId, lease.serverEpoch, lease.workerId,
        lease.workerEpoch,
        lease.sessionId or '', lease.groupId or '', lease.contextTokens or 0 })
    end
  end
  RequestLeases.save(tx)
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. ',"leases":'
    .. Reply.list(leases) .. '}'
end

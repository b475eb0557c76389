--[[ One page of the work that was left when an epoch expired or a server stopped taking leases: returns the leases of
one expired worker or server epoch, or moves waiters out of the lane of a server that takes no leases now. New room goes
to waiters.
Reply: SweptPage
Resumable: finished work is out of the index, so any replica may run the next page.
Flags: allow-oom ]]
return function(tx)
  local PAGE = 64
  local now = tx.now
  local answers, servers = {}, {}
  local returned = 0
  local grants_left = false

  local function move_lane(server_id)
    local server = Servers.get(tx, server_id)
    local page = {}
    if not server or not Servers.is_usable(tx, server) then
      page = redis.call('ZRANGE', tx.key:serverLane(server_id), 0, PAGE - 1)
    end
    for _, acquire_id in ipairs(page) do
      local waiter = Parked.get(tx, acquire_id)
      if waiter then
        Waiters.settle(tx, waiter, answers, servers)
      else
        redis.call('ZREM', tx.key:serverLane(server_id), acquire_id)
      end
    end
    if #page < PAGE then redis.call('SREM', tx.key.rehomedLanes, server_id) end
  end

  local function return_leases(owner)
    -- Ids may contain colons, so the kind ends at the first colon and the epoch begins after the last colon.
    local kind, id, epoch = string.match(owner, '^(%a+):(.+):(%w+)$')
    local index = kind == 'worker' and tx.key:workerLeases(id, epoch) or tx.key:serverLeases(id, epoch)
    local page = redis.call('SRANDMEMBER', index, PAGE)
    local touched, is_touched = {}, {}
    for _, acquire_id in ipairs(page) do
      local packed = redis.call('HGET', tx.key.leases, acquire_id)
      local lease = packed and LeaseRecord.unpack(packed)
      if lease and ((kind == 'worker' and lease.workerId == id and lease.workerEpoch == epoch)
        or (kind == 'server' and lease.serverId == id and lease.serverEpoch == epoch)) then
        Leases.give_back(tx, acquire_id, lease)
        returned = returned + 1
        if not is_touched[lease.serverId] then
          is_touched[lease.serverId] = true
          table.insert(touched, lease.serverId)
        end
      else
        redis.call('SREM', index, acquire_id)
      end
    end
    if #page < PAGE then redis.call('SREM', tx.key.expiredLeaseEpochs, owner) end
    grants_left = Waiters.grant(tx, touched, answers, servers)
  end

  local lane = redis.call('SRANDMEMBER', tx.key.rehomedLanes)
  if lane then
    move_lane(lane)
  else
    local owner = redis.call('SRANDMEMBER', tx.key.expiredLeaseEpochs)
    if owner then return_leases(owner) end
  end
  local more = redis.call('SCARD', tx.key.expiredLeaseEpochs) > 0 or redis.call('SCARD', tx.key.rehomedLanes) > 0
  Leases.save(tx)
  return '{"returned":' .. returned .. ',"answers":' .. Reply.list(answers) .. ',"servers":' .. Reply.servers(servers)
    .. ',"more":' .. tostring(more) .. ',"grantsLeft":' .. tostring(grants_left) .. '}'
end

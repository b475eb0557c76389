--[[ Returns leases and gives the room to those who wait for it.
ARGV[1] JSON:
  items            list of {acquireId, seq?, outcome?}; at most 128. With seq only that very lease is meant; outcome is
                   'finished' or 'failed', for the breaker
  rememberMs       number: how long the answer, or the tombstone, is kept
Reply: results     list, in the order of the items: {released, reason}
       answers     list for parked callers: {acquireId, replyTo, waitedMs, seq, serverId, ...} | {.., error, reason?}
       servers     object: serverId -> {epoch, endpoint, dialect, model?, weightVersion}
       more        true when further waiters may be granted (run waiters/grant)
       broken      list of serverId that the breaker made suspect; absent when there are none
A repeat, a late or an unknown release changes nothing. A release by acquireId of something that is not held leaves a
tombstone, and an acquire by that id that comes later is refused; one that is parked is answered RELEASED.
Flags: allow-oom ]]
local RELEASED = '{"released":true,"reason":"released"}'
local function refused(reason) return '{"released":false,"reason":"' .. reason .. '"}' end

return function(tx, args)
  local answers, servers, results = {}, {}, {}
  local touched, is_touched, broken = {}, {}, {}

  local function not_held(item)
    local past = redis.call('GET', tx.key:released(item.acquireId))
    if past and not Parked.tombstone_error(past) then
      local is_same = item.seq == nil or LeaseRecord.unpack(past).seq == item.seq
      return refused(is_same and 'already-released' or 'unknown')
    end
    if item.seq ~= nil then return refused('unknown') end
    local waiter = Parked.get(tx, item.acquireId)
    if waiter then
      Parked.remove(tx, waiter)
      table.insert(answers, { acquireId = waiter.acquireId, replyTo = waiter.replyTo, error = 'RELEASED' })
    end
    redis.call('SET', tx.key:released(item.acquireId), Parked.TOMBSTONE, 'PX', args.rememberMs)
    return refused('tombstone')
  end

  local function release(item, lease)
    local acquire_id = item.acquireId
    local packed = tx.known_leases[acquire_id]
    if not packed then return not_held(item) end
    if item.seq ~= nil and item.seq ~= lease.seq then return refused('already-released') end
    local server = Servers.get(tx, lease.serverId)
    -- A lease of an expired epoch is the sweeper's; its holder has no say in it any more.
    if not server or server.epoch ~= lease.serverEpoch
      or not Leases.holder(tx, lease.workerId, lease.workerEpoch) then
      return refused('fenced')
    end
    Leases.give_back(tx, acquire_id, lease)
    redis.call('SET', tx.key:released(acquire_id), packed, 'PX', args.rememberMs)
    if item.outcome and Breaker.note_outcome(tx, server, item.outcome) then
      table.insert(broken, server.id)
    end
    if not is_touched[server.id] then
      is_touched[server.id] = true
      touched[#touched + 1] = server.id
    end
    return RELEASED
  end

  -- Reads the servers and requests of many leases with one call for each kind.
  local function read_ahead(leases)
    local server_ids, request_ids = {}, {}
    for _, lease in pairs(leases) do
      server_ids[#server_ids + 1], request_ids[#request_ids + 1] = lease.serverId, lease.requestId
    end
    Servers.read(tx, server_ids, #server_ids)
    RequestLeases.read(tx, request_ids)
  end

  local acquire_ids, leases = {}, {}
  for index, item in ipairs(args.items) do acquire_ids[index] = item.acquireId end
  LeaseTable.read(tx, acquire_ids)
  for index, acquire_id in ipairs(acquire_ids) do
    local packed = tx.known_leases[acquire_id]
    leases[index] = packed and LeaseRecord.unpack(packed) or nil
  end
  if args.items[2] then read_ahead(leases) end
  for index, item in ipairs(args.items) do results[index] = release(item, leases[index]) end
  local more = touched[1] ~= nil and Waiters.grant(tx, touched, answers, servers)
  Leases.save(tx)
  return '{"results":[' .. table.concat(results, ',') .. '],"answers":' .. Reply.list(answers)
    .. ',"servers":' .. Reply.servers(servers) .. ',"more":' .. tostring(more)
    .. (#broken > 0 and ',"broken":' .. Reply.list(broken) or '') .. '}'
end

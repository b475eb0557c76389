--[[ One page of the servers against the indexes of those that take leases and have room; or one page of such an index
against the servers.
ARGV[1] JSON: {index: 'servers' | 'eligible' | 'usableServers' | 'watchedServers' | 'drainingServers' |
  'warmingServers' | 'serverTraits'; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       loads       list of [serverId, epoch, number of leases], when the index is `servers`
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local SCANS = { usableServers = 'SSCAN', serverTraits = 'HSCAN' }
  local scan = SCANS[args.index] or 'ZSCAN'
  local page = redis.call(scan, tx.key[args.index], args.cursor, 'COUNT', PAGE)
  local loads = {}

  local function is_warming(server)
    return redis.call('ZSCORE', tx.key.warmingServers, server.id) ~= false
  end

  local function are_traits_true(server)
    local traits = ServerHash.traits_of(tx, server.id)
    for _, trait in ipairs(traits) do
      if redis.call('SISMEMBER', tx.key:serversWith(trait), server.id) == 0 then return false end
    end
    return redis.call('HGET', tx.key.serverTraits, server.id) == table.concat(traits, '\n')
      and redis.call('SISMEMBER', tx.key.serverBases, traits[1]) == 1
  end

  local function check_server(server)
    local usable = redis.call('SISMEMBER', tx.key.usableServers, server.id) == 1
    local score = redis.call('ZSCORE', tx.key.eligible, server.id)
    local wrong = {}
    if usable ~= Servers.is_usable(tx, server) then table.insert(wrong, 'server-usable') end
    -- In slow start the room grows by itself, and the index follows a little later.
    if (score ~= false) ~= Servers.has_room(tx, server) and not is_warming(server) then table.insert(wrong,
      'server-eligible') end
    if score and tx.policy == LeastInflight and not tx.next_policy
      and tonumber(score) ~= Scores.place_of(tx, server, tx.policy) then
      table.insert(wrong, 'server-score')
    end
    if not are_traits_true(server) then
      table.insert(wrong, 'server-traits')
      if args.repair then
        ServerHash.forget_traits(tx, server.id)
        ServerHash.save_traits(tx, server.id)
      end
    end
    if #wrong > 0 and args.repair then Servers.publish(tx, server) end
    for _, check in ipairs(wrong) do
      Findings.add(tx, check, server.id, string.format('%s, %d leases, score %s', Servers.shown_state(tx, server),
        server.load, score or 'none'),
        args.repair)
    end
    table.insert(loads, { server.id, server.epoch, server.load })
  end

  local function leave_index(id)
    if scan == 'HSCAN' then return ServerHash.forget_traits(tx, id) end
    redis.call(scan == 'SSCAN' and 'SREM' or 'ZREM', tx.key[args.index], id)
  end

  for position = 1, #page[2], scan == 'SSCAN' and 1 or 2 do
    local id = page[2][position]
    local server = Servers.get(tx, id)
    if not server then
      if args.repair then leave_index(id) end
      Findings.add(tx, 'index-without-server', id, args.index, args.repair)
    elseif args.index == 'servers' then
      check_server(server)
    end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. ',"loads":'
    .. Reply.list(loads) .. '}'
end

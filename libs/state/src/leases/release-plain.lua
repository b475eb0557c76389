--[[ Returns leases as leases/release does, in the common case: the pool goes by least-inflight, nobody waits, and the
lease is there and not expired. Whatever is not so is passed over with nothing changed, and is for leases/release.
ARGV: rememberMs as in release; then for each of at most 128 items
  acquireId
  seq, or empty
Reply: list, for each item 1 when it was released and 0 when it was passed over; empty when the pool is not plain now.
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx, _, argv)
  local plain = PlainPool.open(tx)
  local STRIDE, FIRST = 2, 2
  local count = (#argv - FIRST + 1) / STRIDE
  if not plain.is_for_release or not plain.nobody_waits then return {} end

  local acquire_ids = {}
  for index = 1, count do acquire_ids[index] = argv[FIRST + (index - 1) * STRIDE] end
  local known = redis.call('HMGET', tx.key.leases, unpack(acquire_ids))
  local results, returned, bindings, idle = {}, {}, {}, {}
  local is_seen = {} -- an acquireId that was passed over once is so again

  -- The binding of a session, or false; read once.
  local function binding_of(session)
    local binding = bindings[session]
    if binding == nil then
      local packed = redis.call('HGET', tx.key.sessions, session)
      binding = packed and BindingRecord.unpack(packed)
      bindings[session] = binding
    end
    return binding
  end

  for index = 1, count do
    local acquire_id, packed = acquire_ids[index], known[index]
    results[index] = 0
    if packed and not is_seen[acquire_id] then
      is_seen[acquire_id] = true
      local seq, server_id, epoch, worker, request, session, group, tokens = string.match(packed,
        '^(%d+)|([^|]*)|(%w+)|([^|]*|%w+)|([^|]*)|([^|]*)|([^|]*)|%d+|?(%d*)')
      local asked = argv[FIRST + (index - 1) * STRIDE + 1]
      local server = (asked == '' or asked == seq) and PlainPool.server_by(tx, server_id)
      local holder = server and server.name == server_id .. ':' .. epoch and not server.isWarming
        and PlainPool.holder_of(tx, worker)
      local binding = holder and session ~= '' and binding_of(session)
      -- The end of a session that is finished is not plain.
      if holder and not (binding and binding.finished) then
        results[index] = 1
        returned[#returned + 1] = acquire_id
        redis.call('SET', tx.key:released(acquire_id), packed, 'PX', argv[1])
        RequestLeases.change(tx, request, acquire_id, false)
        PlainPool.put_into(server, acquire_id)
        PlainPool.put_into(holder, acquire_id)
        holder.digest = holder.digest - tonumber(seq)
        local surplus = Loads.surplus_tokens(tonumber(tokens))
        if surplus > 0 then Loads.change_count(tx.token_changes, server_id, server.epoch, -surplus) end
        if session ~= '' then Loads.change_count(tx.session_changes, server_id, server.epoch, 1) end
        if binding then
          binding.leases = binding.leases - 1
          binding.changed = true
        end
        if group ~= '' then
          local leases = tx.key:groupLeases(group)
          if redis.call('HINCRBY', leases, server.name, -1) <= 0 then redis.call('HDEL', leases, server.name) end
        end
      end
    end
  end
  if #returned == 0 then return results end

  redis.call('HDEL', tx.key.leases, unpack(returned))
  RequestLeases.save(tx)
  local moved, ids = {}, {}
  for id, server in pairs(plain.servers) do
    if server and server.count > 1 then
      moved[#moved + 1] = server
      ids[#ids + 1] = id
    end
  end
  local chosen = redis.call('HMGET', tx.key.serverChosen, unpack(ids))
  local placed, gone = {}, {}
  for index, server in ipairs(moved) do
    server.load = server.load - server.count + 1
    if server.load < server.most then
      placed[#placed + 1] = string.format('%.0f', Loads.weighed(server.load,
        server) * Loads.LOAD_UNIT + (tonumber(chosen[index] or nil) or 0))
      placed[#placed + 1] = server.id
    else
      gone[#gone + 1] = server.id
    end
  end
  if #placed > 0 then redis.call('ZADD', tx.key.eligible, unpack(placed)) end
  if #gone > 0 then redis.call('ZREM', tx.key.eligible, unpack(gone)) end
  PlainPool.save_members(tx, 'SREM')
  Loads.save(tx)
  local bound = {}
  for session, binding in pairs(bindings) do
    if binding and binding.changed then
      bound[#bound + 1] = session
      bound[#bound + 1] = BindingRecord.pack(binding)
      if binding.leases <= 0 then
        idle[#idle + 1] = string.format('%.0f', tx.now)
        idle[#idle + 1] = session
      end
    end
  end
  if #bound > 0 then redis.call('HSET', tx.key.sessions, unpack(bound)) end
  if #idle > 0 then redis.call('ZADD', tx.key.idleSessions, unpack(idle)) end
  return results
end

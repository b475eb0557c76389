--[[ Counts some counters by server in one go, over all leases and sessions: the last word on those that seem off. With
`repair` those that are off are set, and their servers put where they belong then.
ARGV[1] JSON:
  counters         list of {hash, groupId?: as in audit/counters; name: serverId:epoch}, at most 128
  most             number: with more leases or sessions nothing is counted, so that it stays short
  repair           boolean
Reply: counted     boolean
       counters    list, in the order of the request, of [number there, number found]
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  if redis.call('HLEN', tx.key.leases) > args.most or redis.call('HLEN', tx.key.sessions) > args.most then
    return '{"counted":false,"counters":[]}'
  end

  local sums = { serverTokens = {}, serverSessions = {} } -- hash, or groupId with a `|` before it, -> name -> sum
  local function add(hash, server_id, epoch, amount)
    if amount == 0 then return end
    sums[hash] = sums[hash] or {}
    local name = Loads.count_name(server_id, epoch)
    sums[hash][name] = (sums[hash][name] or 0) + amount
  end
  for _, packed in ipairs(redis.call('HVALS', tx.key.leases)) do
    local lease = LeaseRecord.unpack(packed)
    if lease.seq then
      add('serverTokens', lease.serverId, lease.serverEpoch, Loads.surplus_tokens(lease.contextTokens))
      if lease.sessionId then add('serverSessions', lease.serverId, lease.serverEpoch, -1) end
      if lease.groupId then add('|' .. lease.groupId, lease.serverId, lease.serverEpoch, 1) end
    end
  end
  for _, packed in ipairs(redis.call('HVALS', tx.key.sessions)) do
    local binding = BindingRecord.unpack(packed)
    if binding.epoch and binding.epoch ~= BindingRecord.NO_EPOCH then add('serverSessions', binding.serverId,
      binding.epoch, 1) end
  end

  local counters = {}
  for index, counter in ipairs(args.counters) do
    local group = counter.hash == 'group' and counter.groupId
    local hash = group and tx.key:groupLeases(group) or tx.key[counter.hash]
    local there = tonumber(redis.call('HGET', hash, counter.name) or nil) or 0
    local found = (sums[group and '|' .. group or counter.hash] or {})[counter.name] or 0
    counters[index] = { there, found }
    if args.repair and there ~= found then
      if found == 0 then
        redis.call('HDEL', hash, counter.name)
      else
        redis.call('HSET', hash, counter.name, Format.integer(found))
      end
      local id, epoch = string.match(counter.name, '^(.*):(%w+)$')
      local server = Servers.get(tx, id)
      if server and server.epoch == epoch then Servers.rescore(tx, server) end
    end
  end
  return '{"counted":true,"counters":' .. Reply.list(counters) .. '}'
end

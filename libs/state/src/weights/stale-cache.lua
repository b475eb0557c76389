--[[ Whether the engine of a server must empty its prefix cache when the weights of the server are reported: entries of
other weights must not be used again. An engine that keeps cache entries apart by salt (ServerWeights.describe) empties
its cache only to free memory, when nothing runs on it; any other engine must empty it, also when requests were kept
over the change. A repeat of the known version changes nothing, except while the weights change, are unknown or have a
stale cache, and from a caller who has loaded weights. An engine that only its callers can reach is left alone.
ARGV[1] JSON:
  serverId, weightVersion
  isLoad   the caller may have loaded other weights under the same version
  start?   {instanceId?, endpoint, dialect}: registration of the server that is under way; another start than the known
           start, or without an instanceId another address, is an engine that has computed nothing yet
Reply: beganMs  start of the last change of weights; 0: there was none
       engine   {endpoint, dialect} or absent
       needed   true: until the cache is empty, the server must take no leases; or absent
       busy     true: requests run on the server, which hold the cache; or absent
Flags: no-writes ]]
return function(tx, args)
  local server, start = Servers.get(tx, args.serverId), args.start

  local function is_other_start()
    if start.instanceId then return start.instanceId ~= ServerRecord.instance_of(server) end
    return start.endpoint ~= ServerRecord.address_of(server).endpoint
  end

  local function is_same_weights()
    if args.isLoad or server.weightVersion ~= args.weightVersion or Weights.sync(tx) then return false end
    local is_unknown, is_stale = ServerWeights.state(tx, server)
    return not is_unknown and not is_stale
  end

  local reply = { beganMs = Settings.number(tx, 'weightsBeganMs') or 0 }
  if not server or not server.probed or is_same_weights() or start and is_other_start() then
    return cjson.encode(reply)
  end
  local _, cache = ServerRecord.weights(server)
  local has_salts, is_busy = cache == ServerRecord.CACHES.salt, server.load > 0
  local packed = redis.call('HGET', tx.key:server(server.id), 'capabilities')
  if packed and cjson.decode(packed).prefixCacheReset == false or has_salts and is_busy then
    return cjson.encode(reply)
  end
  local engine = start or ServerRecord.address_of(server)
  reply.engine = { endpoint = engine.endpoint, dialect = engine.dialect }
  reply.needed, reply.busy = not has_salts, is_busy
  return cjson.encode(reply)
end

--[[ Whether the engine of a server must empty its prefix cache before the server counts as one of these weights: what
older weights computed must not be used again. Not when it has them already, when requests were kept over the change
(mode `keep`, or a change without `weights.begin` while some run), or when only its callers can reach it.
ARGV[1] JSON:
  serverId, weightVersion
  start?   {instanceId?, endpoint, dialect}: what the server is registered as just now; another start than is known, or
           without an instanceId another address, is an engine that has computed nothing yet
Reply: engine   {endpoint, dialect} or absent
Flags: no-writes ]]
return function(tx, args)
  local server, sync, start = Servers.get(tx, args.serverId), Weights.sync(tx), args.start

  local function is_other_start()
    if start.instanceId then return start.instanceId ~= ServerRecord.instance_of(server) end
    return start.endpoint ~= ServerRecord.address_of(server).endpoint
  end

  local function is_stale()
    if not server or not server.probed or server.weightVersion == args.weightVersion then return false end
    if start and is_other_start() then return false end
    local packed = redis.call('HGET', tx.key:server(server.id), 'capabilities')
    if packed and cjson.decode(packed).prefixCacheReset == false then return false end
    if sync then return sync.mode ~= 'keep' end
    return server.load == 0
  end

  if not is_stale() then return '{}' end
  local engine = start or ServerRecord.address_of(server)
  return cjson.encode({ engine = { endpoint = engine.endpoint, dialect = engine.dialect } })
end

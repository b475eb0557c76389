--[[ Whether the engine of a server must empty its prefix cache before the server counts as one of these weights: what
older weights computed must not be used again. Not when it has them already, when requests were kept over the change
(mode `keep`, or a change that nobody has begun while some run), or when only its callers can reach it.
ARGV[1] JSON: {serverId, weightVersion}
Reply: engine   {endpoint, dialect} or absent
Errors: none. Facts: none.
Flags: no-writes ]]
return function(tx, args)
  local server, sync = Servers.get(tx, args.serverId), WeightSync.load(tx)

  local function is_stale()
    if not server or not server.probed or server.weightVersion == args.weightVersion then return false end
    local packed = redis.call('HGET', tx.key:server(server.id), 'capabilities')
    if packed and cjson.decode(packed).prefixCacheReset == false then return false end
    if sync then return sync.mode ~= 'keep' end
    return server.load == 0
  end

  if not is_stale() then return '{}' end
  return cjson.encode({ engine = { endpoint = server.endpoint, dialect = server.dialect } })
end

--[[ One page of the set of leases of a server or worker epoch against the leases.
ARGV[1] JSON: {kind: 'server' | 'worker'; id; epoch: string; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local is_server = args.kind == 'server'
  local index = is_server and tx.key:serverLeases(args.id, args.epoch) or tx.key:workerLeases(args.id, args.epoch)
  local page = redis.call('SSCAN', index, args.cursor, 'COUNT', PAGE)
  local repaired = false
  for _, acquire_id in ipairs(page[2]) do
    local packed = redis.call('HGET', tx.key.leases, acquire_id)
    local lease = packed and LeaseRecord.unpack(packed)
    local belongs = lease and (is_server and lease.serverId == args.id and lease.serverEpoch == args.epoch
      or not is_server and lease.workerId == args.id and lease.workerEpoch == args.epoch)
    if not belongs then
      if args.repair then
        redis.call('SREM', index, acquire_id)
        repaired = true
      end
      Findings.add(tx, 'set-of-' .. args.kind .. '-without-lease', acquire_id, index, args.repair)
    end
  end
  if repaired and is_server then
    local server = Servers.get(tx, args.id)
    if server and server.epoch == args.epoch then Servers.rescore(tx, server) end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. '}'
end

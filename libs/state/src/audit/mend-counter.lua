--[[ Sets a counter that is off, if nothing has changed since it was seen, and puts its server where it belongs then.
ARGV[1] JSON: {hash, groupId?: as in audit/counters; name: serverId:epoch; counted: the number seen, 0 for none; found}
Reply: mended      boolean
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local hash = args.hash == 'group' and tx.key:groupLeases(args.groupId) or tx.key[args.hash]
  if (tonumber(redis.call('HGET', hash, args.name) or nil) or 0) ~= args.counted then return '{"mended":false}' end
  if args.found == 0 then
    redis.call('HDEL', hash, args.name)
  else
    redis.call('HSET', hash, args.name, Format.integer(args.found))
  end
  local id, epoch = string.match(args.name, '^(.*):(%w+)$')
  local server = Servers.get(tx, id)
  if server and server.epoch == epoch then Servers.rescore(tx, server) end
  return '{"mended":true}'
end

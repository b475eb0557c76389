--[[ One page of a hash of counters: those by server of the pool, or all of the leases of one group.
ARGV[1] JSON: {hash: 'serverTokens' | 'serverSessions' | 'group'; groupId?; cursor: string, '0' to begin}
Reply: cursor      string, '0' at the end
       counters    list of [serverId:epoch, number]
Errors: none. Facts: none.
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local hash = args.hash == 'group' and tx.key:groupLeases(args.groupId) or tx.key[args.hash]
  local page = redis.call('HSCAN', hash, args.cursor, 'COUNT', PAGE)
  local counters = {}
  for index = 1, #page[2], 2 do table.insert(counters, { page[2][index], tonumber(page[2][index + 1]) }) end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"counters":' .. Reply.list(counters) .. '}'
end

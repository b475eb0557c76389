--[[ One page of the search for the leases under which some requests run. Writes nothing.
ARGV[1] JSON: {requestIds, cursor}   list of string, at most 256; cursor '0' to begin
Reply: leases   list of {requestId, serverId, epoch}
       cursor   string, '0' at the end
Errors: none. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local LOOKED_AT = 512
  local wanted = {}
  for _, id in ipairs(args.requestIds) do wanted[id] = true end
  local leases = {}
  local page = redis.call('HSCAN', tx.key.leases, args.cursor, 'COUNT', LOOKED_AT)
  for position = 2, #page[2], 2 do
    -- seq|serverId|serverEpoch|workerId|workerEpoch|requestId|..: see leases/lease-record.lua
    local server_id, epoch, id = string.match(page[2][position], '^%d+|([^|]*)|(%w+)|[^|]*|%w+|([^|]*)|')
    if wanted[id] then table.insert(leases, { requestId = id, serverId = server_id, epoch = epoch }) end
  end
  return '{"leases":' .. Reply.list(leases) .. ',"cursor":' .. cjson.encode(page[1]) .. '}'
end

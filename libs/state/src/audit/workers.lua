--[[ One page of the live workers with what their epoch holds.
ARGV[1] JSON: {cursor: string, '0' to begin}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
       workers     list of [workerId, workerEpoch, leases in its set, lease digest as text]
Errors: none. Facts: none.
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local workers = {}
  local page = redis.call('ZSCAN', tx.key.workers, args.cursor, 'COUNT', PAGE)
  for index = 1, #page[2], 2 do
    local id = page[2][index]
    local known = redis.call('HMGET', tx.key:worker(id), 'liveEpoch', 'leaseDigest')
    if known[1] then
      table.insert(workers, { id, known[1], redis.call('SCARD', tx.key:workerLeases(id, known[1])), known[2] or '0' })
    else
      Findings.add(tx, 'index-without-worker', id, 'workers')
    end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. ',"workers":'
    .. Reply.list(workers) .. '}'
end

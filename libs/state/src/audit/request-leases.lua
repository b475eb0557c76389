--[[ One page of the lists of leases by request against the leases; or one page of the set of a request.
ARGV[1] JSON: {requestId?: whose set; cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local of_request, page = Reply.optional(args.requestId), nil

  local function check(request_id, acquire_id)
    local packed = redis.call('HGET', tx.key.leases, acquire_id)
    if packed and LeaseRecord.request_of(packed) == request_id then return end
    if args.repair then RequestLeases.change(tx, request_id, acquire_id, false) end
    Findings.add(tx, 'request-without-lease', acquire_id, request_id, args.repair)
  end

  if of_request then
    local set = tx.key:leasesOfRequest(of_request)
    page = redis.call('SSCAN', set, args.cursor, 'COUNT', PAGE)
    if redis.call('HGET', tx.key.requestLeases, of_request) == RequestLeases.IN_SET then
      for _, acquire_id in ipairs(page[2]) do check(of_request, acquire_id) end
    elseif #page[2] > 0 then
      if args.repair then redis.call('UNLINK', set) end
      Findings.add(tx, 'request-set-unknown', of_request, '', args.repair)
    end
  else
    page = redis.call('HSCAN', tx.key.requestLeases, args.cursor, 'COUNT', PAGE)
    for position = 1, #page[2], 2 do
      local request_id, held = page[2][position], page[2][position + 1]
      if held ~= RequestLeases.IN_SET then
        for _, acquire_id in ipairs(RequestLeases.split(held)) do check(request_id, acquire_id) end
      elseif redis.call('EXISTS', tx.key:leasesOfRequest(request_id)) == 0 then
        if args.repair then redis.call('HDEL', tx.key.requestLeases, request_id) end
        Findings.add(tx, 'request-without-lease', '', request_id, args.repair)
      end
    end
  end
  RequestLeases.save(tx)
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. '}'
end

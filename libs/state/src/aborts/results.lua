--[[ A page of what an abort has selected, as it stands now. Writes nothing.
ARGV[1] JSON: {abortId, cursor, limit}   string, numbers
Reply: results    list of AbortResult of the protocol
       aborting   number of results of the page that are not confirmed
       cursor     number where the next page starts; absent at the end
Errors: none. Events: none.
Flags: no-writes ]]
return function(tx, args)
  local aborting = 0
  local results, bytes = {}, 0

  local function encode(result, segments)
    local plain = cjson.encode(result)
    table.insert(results, segments and InlineSegments.append(plain, segments) or plain)
    bytes = bytes + #results[#results]
  end

  local function request_result(id)
    local request = Requests.load(tx, id)
    -- Forgotten or trained since.
    if not request then return encode({ requestId = id, outcome = 'already-finished' }) end
    local group_state = redis.call('HGET', tx.key:group(request.job, request.groupId), 'state')
    local of_abort = request.stopped or group_state == 'aborting' or group_state == 'dropped'
    if of_abort and request.state == 'cutting' then
      aborting = aborting + 1
      return encode({ requestId = id, outcome = 'aborting' })
    end
    local ended = redis.call('HMGET', tx.key:request(id), 'unconfirmed', 'fenced')
    encode({ requestId = id, outcome = of_abort and 'aborted' or 'already-finished', tokenCount = request.tokens,
      unconfirmed = ended[1] and true or nil, fenced = ended[2] and true or nil }, request.segments)
  end

  local function lease_result(lease_id, id)
    local seq, acquire_id = string.match(lease_id, '^(%d+)%.(.+)$')
    local packed = redis.call('HGET', tx.key.leases, acquire_id)
    local held = packed and string.sub(packed, 1, #seq + 1) == seq .. '|'
    if held then aborting = aborting + 1 end
    local fenced = redis.call('EXISTS', tx.key:fencedLease(lease_id)) == 1
    encode({ requestId = id, leaseId = lease_id, outcome = held and 'aborting' or 'aborted', fenced = fenced or nil })
  end

  for _, row in ipairs(redis.call('ZRANGE', tx.key:abortRows(args.abortId), args.cursor,
    args.cursor + args.limit - 1)) do
    if bytes >= InlineSegments.REPLY_BYTES then break end
    local kind, first, second = string.match(row, '^(%u)|([^|]+)|?(.*)$')
    if kind == 'R' then request_result(first)
    elseif kind == 'W' then encode({ requestId = first, outcome = 'aborted' })
    elseif kind == 'L' then lease_result(first, second)
    else encode({ requestId = first, outcome = 'not-found' }) end
  end
  local cursor = args.cursor + #results
  local more = cursor < redis.call('ZCARD', tx.key:abortRows(args.abortId))
  return '{"results":[' .. table.concat(results, ',') .. '],"aborting":' .. aborting
    .. (more and ',"cursor":' .. Format.integer(cursor) or '') .. '}'
end

--[[ A page of the requests and leases that an abort has selected, with their present outcomes. Writes nothing.
ARGV[1] JSON: {abortId, cursor, limit}   string, numbers
Reply: AbortResultsPage
Flags: no-writes ]]
return function(tx, args)
  local rows = tx.key:abortRows(args.abortId)
  local results, bytes, aborting = {}, 0, 0

  local function request_result(id)
    local request = Request.load(tx, id)
    -- The request was trained or deleted after its selection.
    if not request then return { requestId = id, outcome = 'already-finished' } end
    local group_state = Group.read_state(tx, request.job, request.groupId)
    local of_abort = request.stopped or group_state == 'aborting' or group_state == 'dropped'
    if of_abort and request.state == 'cutting' then return { requestId = id, outcome = 'aborting' } end
    Request.read_end(tx, request)
    return { requestId = id, outcome = of_abort and 'aborted' or 'already-finished', tokenCount = request.tokens,
      unconfirmed = request.unconfirmed or nil, fenced = request.fenced or nil }, request.segments
  end

  local kinds = {
    R = request_result,
    W = function(id) return { requestId = id, outcome = 'aborted' } end,
    N = function(id) return { requestId = id, outcome = 'not-found' } end,
    L = function(lease_id, id)
      local is_fenced = redis.call('EXISTS', tx.key:fencedLease(lease_id)) == 1
      return { requestId = id, leaseId = lease_id, fenced = is_fenced or nil,
        outcome = LeaseTable.named(tx, lease_id) and 'aborting' or 'aborted' }
    end,
  }
  for _, row in ipairs(redis.call('ZRANGE', rows, args.cursor, args.cursor + args.limit - 1)) do
    if bytes >= InlineSegments.REPLY_BYTES then break end
    local selected = Aborts.read_row(row)
    local result, segments = kinds[selected.kind](selected.id, selected.requestId)
    if result.outcome == 'aborting' then aborting = aborting + 1 end
    local plain = cjson.encode(result)
    table.insert(results, segments and InlineSegments.append(plain, segments) or plain)
    bytes = bytes + #results[#results]
  end
  local cursor = args.cursor + #results
  return Reply.object({ aborting = aborting, cursor = cursor < redis.call('ZCARD', rows) and cursor or nil },
    { results = Reply.joined(results) })
end

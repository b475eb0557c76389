--[[ One page of recent decisions, the latest first. The page ends before `limit` when it is half a message long.
ARGV[1] JSON: {cursor: sequence; limit: at most 128; full: from the ring of decisions with snapshots}: DecisionsRequest
Reply: DecisionsReply
Flags: allow-oom ]]
return function(tx, args)
  local REPLY_BYTES = 500000
  local ring = args.full and tx.key.fullDecisions or tx.key.decisions
  local before = tonumber(args.cursor)
  local function seq_of(line) return tonumber(args.full and cjson.decode(line).seq or string.match(line, '^(%d+)')) end

  -- Sequences grow along the ring, so halving finds the first decision that is not earlier than `before`.
  local low, high = 0, redis.call('LLEN', ring)
  while before and low < high do
    local middle = math.floor((low + high) / 2)
    if seq_of(redis.call('LINDEX', ring, middle)) < before then low = middle + 1 else high = middle end
  end
  local decisions, bytes, last = {}, 0, nil
  while #decisions < args.limit and high > 0 and bytes < REPLY_BYTES do
    high = high - 1
    local line = redis.call('LINDEX', ring, high)
    -- A full decision is JSON already; decoding it would lose its empty lists.
    table.insert(decisions, args.full and line or cjson.encode(Decisions.read_line(line)))
    bytes, last = bytes + #decisions[#decisions], line
  end
  local cursor = last and high > 0 and Format.integer(seq_of(last)) or nil
  return Reply.object({ cursor = cursor }, { decisions = Reply.joined(decisions) })
end

--[[ One page of recent decisions, the latest first.
ARGV[1] JSON:
  before?          number: only those of earlier leases
  limit            number, at most 128
  full             boolean: from the ring of those with snapshots
Reply: decisions   list of {seq, acquireId, serverId, decidedAtMs, decision}
       more        true when there are earlier ones
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/reply"
--- @include "includes/decisions"
local args = cjson.decode(ARGV[1])
local ring = args.full and key.fullDecisions or key.decisions
local before = optional(args.before)
local function seq_of(line) return tonumber(args.full and cjson.decode(line).seq or string.match(line, '^(%d+)')) end

-- Sequences grow along the ring: the first that is not earlier than `before` is found by halving.
local low, high = 0, redis.call('LLEN', ring)
while before and low < high do
  local middle = math.floor((low + high) / 2)
  if seq_of(redis.call('LINDEX', ring, middle)) < before then low = middle + 1 else high = middle end
end
local from = math.max(0, high - args.limit)
local decisions = {}
if high > 0 then
  local lines = redis.call('LRANGE', ring, from, high - 1)
  for index = #lines, 1, -1 do
    -- A full one is JSON already; decoding it would lose its empty lists.
    table.insert(decisions, args.full and lines[index] or cjson.encode(read_line(lines[index])))
  end
end
return '{"decisions":[' .. table.concat(decisions, ',') .. '],"more":' .. tostring(from > 0) .. '}'

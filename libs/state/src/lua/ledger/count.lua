--[[ Counts one page of the accepted groups of a completed round into its ledger and into the prompt memory, in the order
of acceptance, each once. A page ends with the group that makes it 128 requests.
ARGV[1] JSON: {job, roundId}
Reply: done   true when all are counted, or there is nothing to count
Errors: none. Facts: none. ]]
--- @include "../includes/transition"
--- @include "../includes/reply"
--- @include "../includes/ledger"
--- @include "../includes/prompt-lengths"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local hash = key.round(args.job, args.roundId)
local field = redis.call('HMGET', hash, 'state', 'ledgerGroups', 'acceptedGroups', 'weightVersion', 'cancelMode')
if (field[1] ~= 'completed' and field[1] ~= 'closed') or field[5] then return '{"done":true}' end
local counted, accepted, version = tonumber(field[2] or 0), tonumber(field[3]), tonumber(field[4])

local sums = {}
local function add(name, by) sums[name] = (sums[name] or 0) + by end
local function text(number) return string.format('%.0f', number) end

local function count_sample(request, lengths)
  local tokens, off_policy, oldest = 0, 0, version
  for _, segment in ipairs(cjson.decode(request.segments)) do
    local made_by = segment.weightVersion or version
    tokens = tokens + segment.tokenCount
    if made_by < version then off_policy = off_policy + segment.tokenCount end
    if segment.tokenCount > 0 then oldest = math.min(oldest, made_by) end
  end
  local at_cap = redis.call('HGET', key.request(request.id), 'finishReason') == 'length'
  add('trained.samples', 1)
  add('trained.tokens', tokens)
  add('trained.offPolicyTokens', off_policy)
  add('trained.length.' .. text(length_bin(tokens)), 1)
  add('trained.span.' .. text(version - oldest), 1)
  if at_cap then add('trained.atCap', 1) end
  table.insert(lengths, { tokens = tokens, capped = at_cap })
end

local touched = 0
while counted < accepted and touched < PAGE do
  local group_id = redis.call('LINDEX', key.roundAccepted(args.job, args.roundId), counted)
  if not group_id then break end
  local group = redis.call('HMGET', key.group(args.job, group_id), 'samples', 'launched', 'cuts', 'promptHash')
  local launched = tonumber(group[2] or group[1])
  local lengths = {}
  for index = 0, launched - 1 do
    local request = load_request(request_id(args.job, group_id, index))
    if request and request.state == 'finished' and #lengths < tonumber(group[1]) then count_sample(request, lengths) end
  end
  add('groups.cuts.' .. text(tonumber(group[3] or 0)), 1)
  if group[4] then remember_lengths(group[4], lengths) end
  counted, touched = counted + 1, touched + launched
end
for name, by in pairs(sums) do count_ledger(args.job, args.roundId, name, by) end
redis.call('HSET', hash, 'ledgerGroups', text(counted))
return '{"done":' .. tostring(counted >= accepted) .. '}'

--[[ A page of the accepted groups of a round, in the order of acceptance. It ends with the group that makes it 128
requests.
ARGV[1] JSON: {job, roundId, cursor, limit, trainerEpoch or absent}
Reply: state      of the round
       groups     list of GroupResult
       cursor     number
       complete   true when no further group will come
Errors: JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED. Facts: none. ]]
--- @include "../includes/rounds"
--- @include "../includes/trainer"
local PAGE = 128
local args = cjson.decode(ARGV[1])
local epoch = optional(args.trainerEpoch)
if epoch then
  local refused = trainer_error(args.job, epoch)
  if refused then return refused end
  saw_trainer(args.job)
end
local round = load_round(args.job, args.roundId)
if not round then return fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
if round.state == 'closed' then return fail('ROUND_CLOSED', 'The round is closed; its results are folded', 'roundId') end
if round.state == 'cancelled' then return fail('ROUND_CANCELLED', 'The round was cancelled', 'roundId') end

local groups, touched = {}, 0
for _, group_id in ipairs(redis.call('LRANGE', key.roundAccepted(args.job, args.roundId), args.cursor, args.cursor + args.limit - 1)) do
  local field = redis.call('HMGET', key.group(args.job, group_id), 'samples', 'promptRef', 'cuts', 'firstStep', 'domain')
  local samples = {}
  for index = 0, tonumber(field[1]) - 1 do
    local id = request_id(args.job, group_id, index)
    local request = redis.call('HMGET', key.request(id), 'finishReason', 'tokens', 'segments')
    local plain = cjson.encode({ requestId = id, sampleIndex = index, finishReason = request[1], tokenCount = tonumber(request[2] or 0) })
    samples[index + 1] = string.sub(plain, 1, -2) .. ',"segments":' .. (request[3] or '[]') .. '}'
  end
  local plain = cjson.encode({ groupId = group_id, promptRef = field[2], cuts = tonumber(field[3] or 0),
    firstStep = tonumber(field[4]), domain = field[5] or nil })
  table.insert(groups, string.sub(plain, 1, -2) .. ',"samples":[' .. table.concat(samples, ',') .. ']}')
  touched = touched + #samples
  if touched >= PAGE then break end
end
local cursor = args.cursor + #groups
local complete = not takes_results(round) and cursor >= round.accepted
return '{"state":"' .. round.state .. '","groups":[' .. table.concat(groups, ',') .. '],"cursor":' .. integer(cursor)
  .. ',"complete":' .. tostring(complete) .. '}'

--[[ A page of the accepted groups of a round, in the order of acceptance. It ends with 128 samples or `maxBytes` of them, also
in the middle of a group: the next page goes on behind them.
ARGV[1] JSON: {job, roundId, cursor, sampleCursor, limit, maxBytes, trainerEpoch or absent}   sampleCursor: samples of the
  first group that are known
Reply: state          of the round
       groups         list of GroupResult; `more` of the last one: its other samples follow
       cursor, sampleCursor   numbers: where the next page starts
       complete       true when no further group will come
Errors: JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/rounds"
--- @include "../includes/trainer"
--- @include "../includes/inline-segments"
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
if round.state == 'cancelled' then return fail('ROUND_CANCELLED', 'The round was cancelled; nothing of it is trained', 'roundId') end

local bytes = 0
-- Finished samples behind the first `known`, at most `room` and one beyond the bytes; true when there are more.
local function samples_of(group_id, launched, needed, known, room)
  local samples, seen = {}, 0
  for index = 0, launched - 1 do
    local id = request_id(args.job, group_id, index)
    local request = redis.call('HMGET', key.request(id), 'state', 'finishReason', 'tokens', 'segments')
    if request[1] == 'finished' then
      seen = seen + 1
      if seen > known then
        if #samples == room or bytes >= args.maxBytes then break end
        local plain = cjson.encode({ requestId = id, sampleIndex = index, finishReason = request[2], tokenCount = tonumber(request[3] or 0) })
        local sample = with_segments(plain, request[4] or '[]')
        bytes = bytes + #sample
        table.insert(samples, sample)
      end
    end
  end
  return samples, known + #samples < needed
end

local groups, touched, cursor, known = {}, 0, args.cursor, args.sampleCursor
for _, group_id in ipairs(redis.call('LRANGE', key.roundAccepted(args.job, args.roundId), args.cursor, args.cursor + args.limit - 1)) do
  local field = redis.call('HMGET', key.group(args.job, group_id), 'samples', 'promptRef', 'cuts', 'firstStep', 'domain', 'launched')
  local samples, more = samples_of(group_id, tonumber(field[6]), tonumber(field[1]), known, PAGE - touched)
  local plain = cjson.encode({ groupId = group_id, promptRef = field[2], cuts = tonumber(field[3] or 0),
    firstStep = tonumber(field[4]), domain = field[5] or nil, more = more or nil })
  table.insert(groups, string.sub(plain, 1, -2) .. ',"samples":[' .. table.concat(samples, ',') .. ']}')
  touched = touched + #samples
  if more then
    known = known + #samples
    break
  end
  cursor, known = cursor + 1, 0
  if touched >= PAGE or bytes >= args.maxBytes then break end
end
local complete = not takes_results(round) and cursor >= round.accepted
return '{"state":"' .. round.state .. '","groups":[' .. table.concat(groups, ',') .. '],"cursor":' .. integer(cursor)
  .. ',"sampleCursor":' .. integer(known) .. ',"complete":' .. tostring(complete) .. '}'

--[[ The holder of an attempt hands the sample in unfinished: as a cut, whose word it is. Its group leaves the round at
once, which asks for a replacement or accepts fewer, and goes to the long-tail queue when no worker has a sample of it.
ARGV[1] JSON:
  requestId, attempt, workerId, workerEpoch
  segment   JSON of the segment made so far as a string, or absent (then the last checkpoint counts)
  tokens    number of tokens of the segment
Reply: state            'unfinished' | 'dropped' | 'failed'; a repeat of the attempt gets the same
       aborts           list of {requestId, attempt, workerId, workerEpoch}: other samples of the group
       roundCompleted   boolean: this call completed the round (with fewer groups)
       job, roundId     of the request
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED. Facts: longtail.requeued, round.completed, round.settled.
Flags: allow-oom ]]
--- @include "../includes/attempts"
local args = cjson.decode(ARGV[1])
local request, group, round = load_attempt(args)
if not request then return group end
if request.state == 'finished' or request.state == 'pending' then return superseded() end
local aborts = {}
local was_open = round ~= nil and takes_results(round)

local function answer()
  return cjson.encode({
    state = request.state, job = request.job, roundId = group.roundId,
    roundCompleted = was_open and not takes_results(round),
  }):sub(1, -2) .. ',"aborts":' .. encode_list(aborts) .. '}'
end

if not HELD[request.state] then return answer() end
if is_ending(group, request) then
  end_unwanted(round, group, request, optional(args.segment), args.tokens)
  return answer()
end
local leaves = was_open and group.state == 'live'
if leaves then leave_for_longtail(round, group) end
cut_request(round, group, request, optional(args.segment), args.tokens)
if leaves then
  if group.live > 0 then
    end_live_requests(group, aborts, function(sibling) cut_request(round, group, sibling, nil, 0) end)
  end
  review_round(round)
end
return answer()

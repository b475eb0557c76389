--[[ The holder of an attempt hands the sample in unfinished: as a cut, whose word it is. Its group leaves the round at
once, which asks for a replacement or accepts fewer, and goes to the long-tail queue when no worker has a sample of it.
ARGV[1] JSON:
  requestId, attempt, workerId, workerEpoch
  segment   JSON of the segment made so far as a string, or absent (then the last partial save counts)
  tokens    number of tokens of the segment
Reply: state            'unfinished' | 'dropped' | 'failed'; a repeat of the attempt gets the same
       aborts           list of {requestId, attempt, workerId, workerEpoch}: other samples of the group
       roundCompleted   boolean: this call completed the round (with fewer groups)
       job, roundId     of the request
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED. Events: longtail.requeued, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local request, group, round = Attempts.load(tx, args)
  if not request then return group end
  if request.state == 'finished' or request.state == 'pending' then return Attempts.superseded() end
  local aborts = {}
  local was_open = round ~= nil and Rounds.takes_results(round)

  local function answer()
    return cjson.encode({
      state = request.state, job = request.job, roundId = group.roundId,
      roundCompleted = was_open and not Rounds.takes_results(round),
    }):sub(1, -2) .. ',"aborts":' .. Reply.list(aborts) .. '}'
  end

  if not Requests.HELD[request.state] then return answer() end
  if Attempts.is_ending(group, request) then
    Attempts.end_unwanted(tx, round, group, request, Reply.optional(args.segment), args.tokens)
    return answer()
  end
  local leaves = was_open and group.state == 'live'
  if leaves then Longtail.enter(tx, round, group) end
  Longtail.cut_request(tx, round, group, request, Reply.optional(args.segment), args.tokens)
  if leaves then
    if group.live > 0 then
      Cancellation.stop_live(tx, round, group, aborts, function(sibling)
        Longtail.cut_request(tx, round, group, sibling, nil, 0)
      end)
    end
    Rounds.review_round(tx, round)
  end
  return answer()
end

--[[ The holder of an attempt hands the sample in unfinished: as a cut that the holder has decided. Its group leaves the
round at once, which asks for a replacement or accepts fewer, and goes to the long-tail queue when no worker has a
sample of it.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, segment, tokens}: RequeueArgs. Without a segment the last
  partial save counts
Reply: RequeueAnswer; a repeat of the attempt gets the same state
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED. Events: longtail.requeued, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local request, group, round = Attempts.load(tx, args)
  if not request then return group end
  if request.state == 'finished' or request.state == 'pending' then return Attempts.superseded() end
  local aborts = {}
  local was_open = round ~= nil and Rounds.takes_results(round)
  if Requests.HELD[request.state] and Attempts.is_ending(group, request) then
    Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
  elseif Requests.HELD[request.state] then
    local leaves = was_open and group.state == 'live'
    if leaves then Longtail.enter(tx, round, group) end
    Longtail.cut_request(tx, round, group, request, args.segment, args.tokens)
    if leaves then
      if group.live > 0 then Longtail.cut_live(tx, round, group, aborts) end
      Rounds.review_round(tx, round)
    end
  end
  return Reply.object({ state = request.state, job = request.job, roundId = group.roundId, aborts = aborts,
    roundCompleted = was_open and not Rounds.takes_results(round) })
end

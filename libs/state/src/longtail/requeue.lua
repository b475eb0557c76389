--[[ Takes an unfinished sample and its group out of the round: a cut that the holder of the attempt or an operator has
decided. The round asks for a replacement or accepts fewer groups. The group goes to the long-tail queue when no worker
has a sample of it.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, segment, tokens}: RequeueArgs
  workerId   the holder, who hands the sample in; absent for an operator: the holders of all samples are asked to stop
  segment    absent: the last partial save counts
Reply: RequeueAnswer; a repeat of the attempt gets the same state
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED. Events: longtail.requeued, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local is_holder = args.workerId ~= nil
  local request, group, round = (is_holder and Attempts.load or Attempts.load_named)(tx, args)
  if not request then return group end
  if request.state == 'finished' or request.state == 'pending' then return Attempts.superseded() end
  local aborts = {}
  local was_open = round ~= nil and Round.takes_results(round)
  local is_held, is_ending = Request.HELD[request.state], Attempts.is_ending(group, request)
  if is_held and is_ending and is_holder then
    Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
  elseif is_held and not is_ending then
    local leaves = was_open and group.state == 'live'
    if leaves then Longtail.enter(tx, round, group) end
    if is_holder then Longtail.cut_request(tx, round, group, request, args.segment, args.tokens) end
    if leaves then
      if group.live > 0 then Longtail.cut_live(tx, round, group, aborts) end
      Rounds.review_round(tx, round)
    end
  end
  if not is_holder then request = Request.load(tx, request.id) end
  return Reply.object({ state = request.state, job = request.job, roundId = group.roundId, aborts = aborts,
    roundCompleted = was_open and not Round.takes_results(round) })
end

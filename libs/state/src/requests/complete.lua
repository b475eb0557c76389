--[[ Finishes a sample. The last sample of a group accepts the group, the last group completes the round. A finished
sample wins over a cut that is not confirmed, never over an abort; only a policy that discards throws away samples that
arrive after the completion. When a group has all the samples it needs, its other samples are surplus.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, finishReason, engineFinishReason, segment, tokens, isMissing,
  stamp, run}: CompleteArgs. No sample finishes with a segment that the payload store does not have, or may have lost
  since the caller checked it; the caller saw `stamp` before that check
Reply: CompleteAnswer; a repeat of the attempt gets the same state. roundCompleted: the rest of the round is to be cut
An end that raises an error again and again drops the request as lost (requests/broken-ends).
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED, GENERATION_CHANGED, PAYLOAD_NOT_FOUND.
Events: request.finished, attempt.ended, round.progressed, round.completed, round.settled, longtail.requeued,
  request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local function complete_attempt()
    local request, group, round = Attempts.load(tx, args)
    if not request then return group end

    local aborts = {}
    request.run = args.run

    local function answer(state)
      return cjson.encode({
        state = state, groupAccepted = group.state == 'accepted', job = request.job, roundId = group.roundId,
        roundCompleted = round ~= nil and not Round.takes_results(round), madeRoom = tx.jobs_readmitted,
        moveTimes = request.moveTimes,
      }):sub(1, -2) .. ',"aborts":' .. Reply.list(aborts) .. '}'
    end

    if not Request.HELD[request.state] then
      if request.state == 'finished' or request.state == 'unfinished' then return answer(request.state) end
      if request.state == 'pending' then return Attempts.superseded() end
      return answer('dropped')
    end
    if Attempts.is_ending(group, request) then
      Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
      return answer('dropped')
    end
    if not Round.takes_results(round) and round.discards then
      Longtail.cut_request(tx, round, group, request, args.segment, args.tokens)
      return answer('unfinished')
    end
    local changed = args.segment and args.stamp and Generation.stamp_error(tx, args.stamp)
    if changed then return changed end
    if args.isMissing then
      local message = 'segment.ref: the payload is not in the store: store it again and name that'
      return Reply.fail('PAYLOAD_NOT_FOUND', message, 'segment.ref')
    end

    KeptTokens.keep(tx, request, group, args.segment, args.tokens, true)
    local event = AttemptEnds.fields(tx, request, group)
    event.tokens, event.finishReason = request.tokens, args.finishReason
    local reasons = { 'finishReason', args.finishReason }
    if args.engineFinishReason then reasons[3], reasons[4] = 'engineFinishReason', args.engineFinishReason end
    Requests.move(tx, request, group, 'finished', reasons)
    Round.add(tx, round, 'requestsDone', 1)
    Dispatch.follow_probe(tx, group)
    Ledger.count_ended(tx, round, request.tokens, args.finishReason == 'length')
    Events.add(tx, 'request.finished', event)
    if Group.is_whole(group) then
      Longtail.place_whole(tx, round, group, aborts)
    elseif group.live == 0 and GroupEnds.is_settling(round, group) then
      GroupEnds.settle_group(tx, round, group)
    end
    return answer('finished')
  end
  return BrokenEnds.end_in_any_case(tx, args, complete_attempt)
end

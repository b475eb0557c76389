--[[ The attempt ends without completing. Where the request goes is decided by what was intended for it.
ARGV[1] JSON:
  requestId, attempt, workerId, workerEpoch
  countsAsFailure   boolean: of the request: failures + 1, and when not retryable it has failed for good at once; else
                    returns + 1. Above `maxFailures` or `maxReturns` of the round it fails for good, whatever the reason
  retryable         boolean
  reason, message   strings; message may be absent. `timeout`: its own time is over; it ends, and its group
                    goes on or is dropped as by an abort in the scope of its round
  segment           JSON of the segment made so far as a string, or absent (then the last partial save counts)
  tokens            number of tokens of the segment
  missingRef        string or absent: a segment of the request that the payload store has no longer; it is forgotten
                    with those after it
  lostTokens        number or absent: tokens the attempt made that could not be stored
  generatedMs       number or absent: how long the attempt has generated
  run               AttemptRun or absent: server and times of the attempt, for the event
Reply: FailAnswer; a repeat of the attempt gets the same state
An end that raises an error again and again drops the request as lost (requests/broken-ends).
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Events: attempt.ended, group.failed, group.dropped, request.aborted, round.completed, round.settled,
  longtail.requeued, request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local function fail_attempt()
    local request, group, round = Attempts.load(tx, args)
    if not request then return group end
    if request.state == 'finished' then return Attempts.superseded() end
    local aborts = {}
    request.run = args.run
    local was_open = round ~= nil and Rounds.takes_results(round)

    local function end_attempt()
      GenerationTime.note_time(tx, request, group, args.generatedMs)
      if Attempts.is_ending(group, request) then
        return Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
      end
      if args.missingRef and round then KeptTokens.lose_from(tx, request, group, round, args.missingRef) end
      if Rounds.is_cut(round, group) then
        return Longtail.cut_request(tx, round, group, request, args.segment, args.tokens)
      end
      if args.reason == 'timeout' then
        return Aborts.time_out(tx, round, group, request, args.segment, args.tokens, aborts)
      end
      -- An engine that stands still for new weights, its requests kept, looks stalled.
      local stands_still = redis.call('HGET', tx.key.weightSync, 'mode') == 'keep'
      local lost = (args.lostTokens or 0) - math.max(request.savedTokens, args.tokens)
      if lost > 0 then Ledger.count(tx, request.job, round.roundId, 'waste.not-stored', lost) end
      Attempts.put_back(tx, round, group, request, aborts, {
        reason = args.reason, message = args.message, segment = args.segment, tokens = args.tokens,
        isFailure = args.countsAsFailure and not stands_still, isFinal = not args.retryable,
      })
    end

    if Requests.HELD[request.state] then end_attempt() end
    return Reply.object({
      state = request.state, job = request.job, roundId = group.roundId, aborts = aborts,
      roundCompleted = was_open and not Rounds.takes_results(round), madeRoom = tx.jobs_readmitted,
    })
  end
  return BrokenEnds.end_in_any_case(tx, args, fail_attempt)
end

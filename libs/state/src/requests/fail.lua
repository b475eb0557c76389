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
Reply: state            'pending' | 'unfinished' | 'failed' | 'dropped'; a repeat of the attempt gets the same
       aborts           list of {requestId, attempt, workerId, workerEpoch}: other samples of a failed group
       roundCompleted   boolean: this call completed the round (with fewer groups)
       job, roundId     of the request
       madeRoom         boolean: a job that was at its cap has room again
An end that raises an error again and again drops the request as lost (requests/broken-ends).
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Events: group.failed, group.dropped, request.aborted, round.completed, round.settled, longtail.requeued, request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local function fail_attempt()
    local request, group, round = Attempts.load(tx, args)
    if not request then return group end
    if request.state == 'finished' then return Attempts.superseded() end
    local aborts = {}
    local was_open = round ~= nil and Rounds.takes_results(round)

    local function answer()
      return cjson.encode({
        state = request.state, job = request.job, roundId = group.roundId,
        roundCompleted = was_open and not Rounds.takes_results(round), madeRoom = tx.jobs_readmitted,
      }):sub(1, -2) .. ',"aborts":' .. Reply.list(aborts) .. '}'
    end

    if not Requests.HELD[request.state] then return answer() end
    GenerationTime.note_time(tx, request, group, args.generatedMs)
    if Attempts.is_ending(group, request) then
      Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
      return answer()
    end
    if args.missingRef and round then KeptTokens.lose_from(tx, request, group, round, args.missingRef) end
    local segment = args.segment
    if Rounds.is_cut(round, group) then
      Longtail.cut_request(tx, round, group, request, segment, args.tokens)
      return answer()
    end

    if args.reason == 'timeout' then
      Aborts.time_out(tx, round, group, request, segment, args.tokens, aborts)
      return answer()
    end

    -- An engine that stands still for new weights, its requests kept, looks stalled.
    local stands_still = redis.call('HGET', tx.key.weightSync, 'mode') == 'keep'
    local lost = (args.lostTokens or 0) - math.max(request.savedTokens, args.tokens)
    if lost > 0 then Ledger.count(tx, request.job, round.roundId, 'waste.not-stored', lost) end
    Attempts.put_back(tx, round, group, request, aborts, {
      reason = args.reason, message = args.message, segment = segment, tokens = args.tokens,
      isFailure = args.countsAsFailure and not stands_still, isFinal = not args.retryable,
    })
    return answer()
  end
  return BrokenEnds.end_in_any_case(tx, args, fail_attempt)
end

--[[ Ends an attempt that has not completed. A cut, abort or move of the request, if any, decides its next state.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, countsAsFailure, isUnserved, deadlineMs, retryable, reason,
  message, segment, tokens, missingRef, lostTokens, generatedMs, run}: FailArgs
A failure of the request counts for `maxFailures` once for each start of a server, unless most servers fail other
prompts too. A failure is final when it is not retryable, when it comes `deadlineMs` after the first failure, or when no
engine of the pool is left that answers in its dialect (requests/setbacks). Any other end counts for `maxReturns`. With
the reason `timeout` the request ends, and its group continues or is dropped as by an abort in the scope of its round.
A missing segment is forgotten with the segments after it.
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
    local was_open = round ~= nil and Round.takes_results(round)

    local function end_attempt()
      GenerationTime.note_time(tx, request, group, args.generatedMs)
      local lost = (args.lostTokens or 0) - math.max(request.savedTokens, args.tokens)
      if round and lost > 0 then Ledger.count(tx, round, 'waste.not-stored', lost) end
      if Attempts.is_ending(group, request) then
        return Attempts.end_unwanted(tx, round, group, request, args.segment, args.tokens)
      end
      if args.missingRef and round then KeptTokens.lose_from(tx, request, group, round, args.missingRef) end
      if Round.is_cut(round, group) then
        return Longtail.cut_request(tx, round, group, request, args.segment, args.tokens)
      end
      if args.reason == 'timeout' then
        return Aborts.time_out(tx, round, group, request, args.segment, args.tokens, aborts)
      end
      -- An engine that is paused for new weights, with its requests kept, appears as stalled.
      local stands_still = redis.call('HGET', tx.key.weightSync, 'mode') == 'keep'
      local is_failure = args.countsAsFailure and not stands_still
      local server_id = args.run and args.run.serverId
      Attempts.put_back(tx, round, group, request, aborts, {
        reason = args.reason, message = args.message, segment = args.segment, tokens = args.tokens,
        isFailure = is_failure, isFinal = not args.retryable, serverId = server_id, deadlineMs = args.deadlineMs,
        isWrong = args.reason == 'engine-rejected',
        isSetback = is_failure or (args.isUnserved and server_id ~= nil),
      })
    end

    if Request.HELD[request.state] then end_attempt() end
    return Reply.object({
      state = request.state, job = request.job, roundId = group.roundId, aborts = aborts,
      roundCompleted = was_open and not Round.takes_results(round), madeRoom = tx.jobs_readmitted,
      moveTimes = request.moveTimes,
    })
  end
  local answer, message = BrokenEnds.end_in_any_case(tx, args, fail_attempt)
  return answer or redis.error_reply('ERR ' .. message)
end

--[[ The attempt ends without completing. Where the request goes is decided by what was intended for it.
ARGV[1] JSON:
  requestId, attempt, workerId, workerEpoch
  countsAsFailure   boolean: of the request: failures + 1, and when not retryable it has failed for good at once; else
                    returns + 1. Above `maxFailures` or `maxReturns` of the round it fails for good, whatever the reason
  retryable         boolean
  reason, message   strings; message may be absent. `timeout`: its own time is over; it ends, and its group
                    goes on or is dropped as by an abort in the scope of its round
  segment           JSON of the segment made so far as a string, or absent (then the last checkpoint counts)
  tokens            number of tokens of the segment
  missingRef        string or absent: a segment of the request that the payload store has no longer; it is forgotten with
                    those after it
  lostTokens        number or absent: tokens the attempt made that could not be stored
  generatedMs       number or absent: how long the attempt has generated
Reply: state            'pending' | 'unfinished' | 'failed' | 'dropped'; a repeat of the attempt gets the same
       aborts           list of {requestId, attempt, workerId, workerEpoch}: other samples of a failed group
       roundCompleted   boolean: this call completed the round (with fewer groups)
       job, roundId     of the request
       madeRoom         boolean: a job that was at its cap has room again
An end that raises an error again and again drops the request as lost (includes/broken-ends).
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Facts: group.failed, group.dropped, request.aborted, round.completed, round.settled, longtail.requeued, request.lost.
Flags: allow-oom ]]
--- @include "../includes/generation-time"
--- @include "../includes/broken-ends"
local args = cjson.decode(ARGV[1])
local function fail_attempt()
  local request, group, round = load_attempt(args)
  if not request then return group end
  if request.state == 'finished' then return superseded() end
  local aborts = {}
  local was_open = round ~= nil and takes_results(round)

  local function answer()
    return cjson.encode({
      state = request.state, job = request.job, roundId = group.roundId,
      roundCompleted = was_open and not takes_results(round), madeRoom = jobs_readmitted,
    }):sub(1, -2) .. ',"aborts":' .. encode_list(aborts) .. '}'
  end

  if not HELD[request.state] then return answer() end
  note_time(request, group, optional(args.generatedMs))
  if is_ending(group, request) then
    end_unwanted(round, group, request, optional(args.segment), args.tokens)
    return answer()
  end
  if optional(args.missingRef) and round then lose_tokens_from(request, round, args.missingRef) end
  local segment = optional(args.segment)
  if is_cut(round, group) then
    cut_request(round, group, request, segment, args.tokens)
    return answer()
  end

  if args.reason == 'timeout' then
    time_out(round, group, request, segment, args.tokens, aborts)
    return answer()
  end

  -- An engine that stands still for new weights, its requests kept, looks stalled.
  local stands_still = redis.call('HGET', key.weightSync, 'mode') == 'keep'
  local lost = (optional(args.lostTokens) or 0) - math.max(request.checkpointTokens, args.tokens)
  if lost > 0 then count_ledger(request.job, round.roundId, 'waste.not-stored', lost) end
  put_back(round, group, request, aborts, {
    reason = args.reason, message = optional(args.message), segment = segment, tokens = args.tokens,
    isFailure = args.countsAsFailure and not stands_still, isFinal = not args.retryable,
  })
  return answer()
end
return end_in_any_case(args, fail_attempt)

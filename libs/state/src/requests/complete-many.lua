--[[ Finishes samples of a worker, one page of at most 32, in their order. The last sample of a group accepts the group,
the last group completes the round. A finished sample wins over a cut that is not confirmed, never over an abort; only a
policy that discards throws away samples that arrive after the completion. When a group has all the samples it needs,
its other samples are surplus.
ARGV[1] JSON: {workerId, workerEpoch, stamp, completes}: CompleteManyArgs. No sample finishes with a segment that the
  payload store does not have, or may have lost since the caller checked it; the caller saw `stamp` before that check
Reply: results   list of CompleteAnswer, or {error} of the sample, in the order of the samples; a repeat of an attempt
                 gets the same state. roundCompleted: the rest of the round is to be cut
An error of one sample does not end the others. An error that is raised is answered with the code INTERNAL; an end that
raises an error again and again drops the request as lost (requests/broken-ends).
Errors per sample: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED, GENERATION_CHANGED, PAYLOAD_NOT_FOUND.
Events: request.finished, attempt.ended, round.progressed, round.completed, round.settled, longtail.requeued,
  request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local results, known = {}, {}
  for position, complete in ipairs(args.completes) do
    complete.workerId, complete.workerEpoch, complete.stamp = args.workerId, args.workerEpoch, args.stamp
    results[position] = Completes.complete(tx, complete, known)
  end
  return '{"results":' .. Reply.joined(results) .. '}'
end

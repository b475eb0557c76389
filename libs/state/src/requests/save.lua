--[[ The attempt runs on a server; with a segment, its tokens so far are safe.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, segment, tokens, serverId, generatedMs}: SaveArgs. A segment
  without more tokens than the last one is an older message
Reply: action   'continue' | 'abort' (cut or dropped: end the attempt with request.fail)
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Flags: allow-oom ]]
return function(tx, args)
  local request, group, round = Attempts.load(tx, args)
  if not request then return group end
  if not Requests.HELD[request.state] then
    if request.state == 'pending' then return Attempts.superseded() end
    return Reply.object({ action = 'abort' })
  end

  GenerationTime.note_time(tx, request, group, args.generatedMs)
  local segment = args.segment
  Hashes.set(tx.key:request(request.id), { started = 1, serverId = args.serverId })
  if segment and (not request.savedSegment or args.tokens > request.savedTokens) then
    redis.call('HSET', tx.key:request(request.id), 'savedSegment', segment, 'savedTokens', args.tokens)
    request.savedSegment, segment = segment, request.savedSegment
  end
  KeptTokens.free_unused(tx, request, segment)
  if request.state == 'claimed' then Requests.move(tx, request, group, 'running') end
  if request.state == 'cutting' or not Rounds.takes_results(round) then return Reply.object({ action = 'abort' }) end
  return Reply.object({ action = 'continue' })
end

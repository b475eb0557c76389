--[[ Notes that an attempt runs on a server; with a segment, its tokens so far are saved.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, segment, tokens, serverId, waiting, generatedMs, run}:
  SaveArgs. A segment without more tokens than the saved segment is an older message
Reply: action      'continue' | 'abort' (cut or dropped: end the attempt with request.fail)
       moveTimes   MoveTimes, of the move that led to the attempt; only with the first save after its first token
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Flags: allow-oom ]]
return function(tx, args)
  local request, group, round = Attempts.load(tx, args)
  if not request then return group end
  if not Request.HELD[request.state] then
    if request.state == 'pending' then return Attempts.superseded() end
    return Reply.object({ action = 'abort' })
  end

  GenerationTime.note_time(tx, request, group, args.generatedMs)
  Moves.note_times(tx, request, args.run)
  local segment = args.segment
  Request.set_running(tx, request, args.serverId, args.waiting)
  if segment and (not request.savedSegment or args.tokens > request.savedTokens) then
    local before = request.savedSegment
    Request.set(tx, request, { savedSegment = segment, savedTokens = args.tokens })
    segment = before
  end
  KeptTokens.free_unused(tx, request, segment)
  if request.state == 'claimed' then Requests.move(tx, request, group, 'running') end
  if request.state == 'cutting' or not Round.takes_results(round) then return Reply.object({ action = 'abort' }) end
  return Reply.object({ action = 'continue', moveTimes = request.moveTimes })
end

--[[ Checks again one page of requests that are being moved: the holders were asked to stop and have not confirmed.
Requests of expired holders become pending. After the deadline a holder keeps its attempt, which continues where it is.
ARGV[1] JSON: {cursor, deadlineMs}   numbers
Reply: RepeatedMoves
Flags: allow-oom ]]
return function(tx, args)
  local aborts, expired, pending = {}, 0, 0
  local cursor = Pages.walk(tx.key.movingRequests, args.cursor, function(id, started_at)
    local request = Request.load(tx, id)
    if not request or request.state ~= 'cutting' then
      redis.call('ZREM', tx.key.movingRequests, id)
    elseif not WorkerFence.is_current(tx, request.workerId, request.workerEpoch) then
      if Attempts.return_attempt(tx, request) then pending = pending + 1 end
    elseif tx.now - started_at <= args.deadlineMs then
      Cancellation.stop_held(tx, request, {}, aborts)
    else
      local group = Group.load(tx, request.job, request.groupId)
      local round = group and Round.load(tx, request.job, group.roundId)
      -- A cut or an abort that was requested meanwhile has another deadline.
      if round and group.state == 'live' and Round.takes_results(round) and not Attempts.is_ending(group, request) then
        Requests.move(tx, request, group, 'running')
        expired = expired + 1
      end
    end
    return 1
  end)
  return Reply.object({ aborts = aborts, expired = expired, pending = pending, cursor = cursor })
end

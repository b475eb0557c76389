--[[ Looks again at one page of requests whose holders were told to stop them for a move and have not confirmed it:
those of expired holders are pending again; a holder that has had its time keeps its attempt, which goes on where it is.
ARGV[1] JSON: {cursor, deadlineMs}   numbers; cursor 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       expired         number of moves given up
       pending         number of requests that may be claimed again
       cursor          number where the next page starts; absent at the end
Errors: none. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local now = tx.now
  local aborts, expired, pending = {}, 0, 0
  local page = redis.call('ZRANGE', tx.key.movingRequests, args.cursor, args.cursor + PAGE - 1, 'WITHSCORES')
  local before = redis.call('ZCARD', tx.key.movingRequests)
  for position = 1, #page, 2 do
    local request = Requests.load(tx, page[position])
    if not request or request.state ~= 'cutting' then
      redis.call('ZREM', tx.key.movingRequests, page[position])
    elseif not WorkerFence.is_current(tx, request.workerId, request.workerEpoch) then
      if Attempts.return_attempt(tx, request) then pending = pending + 1 end
    elseif now - tonumber(page[position + 1]) <= args.deadlineMs then
      Cancellation.stop_held(tx, request, {}, aborts)
    else
      local group = Rounds.load_group(tx, request.job, request.groupId)
      local round = group and Rounds.load(tx, request.job, group.roundId)
      -- A cut or an abort that came meanwhile has its own deadline.
      if round and group.state == 'live' and Rounds.takes_results(round) then
        Requests.move(tx, request, group, 'running')
        expired = expired + 1
      end
    end
  end
  local left = before - redis.call('ZCARD', tx.key.movingRequests)
  local cursor = args.cursor + #page / 2 - left
  local more = #page > 0 and cursor < redis.call('ZCARD', tx.key.movingRequests)
  return '{"aborts":' .. Reply.list(aborts) .. ',"expired":' .. expired .. ',"pending":' .. pending
    .. (more and ',"cursor":' .. Format.integer(cursor) or '') .. '}'
end

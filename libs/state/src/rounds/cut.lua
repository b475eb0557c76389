--[[ Cuts one page of the groups a completed round did not accept. What nobody has goes to `unfinished` at once, what a
worker has becomes `cutting` and is returned for an abort, again each time until it is confirmed or its holder is
expired. Of a round that is open, goes on giving free places to groups that are held.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {job, roundId, cursor}   cursor: number, 0 to begin
Reply: aborts          list of {requestId, attempt, workerId, workerEpoch}
       cursor          number where the next page starts; absent at the end
       settled         true when nothing is left to cut
Errors: none. Events: longtail.requeued, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local round = Rounds.load(tx, args.job, args.roundId)
  if not round then return '{"aborts":[],"settled":true}' end
  if round.state == 'opening' then return '{"aborts":[],"settled":false}' end
  if round.state == 'open' then
    -- Places that came free for more groups than one script accepts.
    redis.call('SREM', tx.key.sweeps, Rounds.sweep_name(round))
    Rounds.review_round(tx, round)
    local more = redis.call('SISMEMBER', tx.key.sweeps, Rounds.sweep_name(round)) == 1 and Rounds.takes_results(round)
    return '{"aborts":[]' .. (more and ',"cursor":0' or '') .. ',"settled":false}'
  end

  local aborts, touched, remaining = {}, 0, 0
  local page = redis.call('ZRANGE', tx.key:roundGroups(args.job, args.roundId), args.cursor, args.cursor + PAGE - 1)
  local seen = 0
  for _, group_id in ipairs(page) do
    if touched >= PAGE then break end
    seen = seen + 1
    local group = Rounds.load_group(tx, args.job, group_id)
    touched = touched + (group and group.launched or 1)
    if not group then
      Recovery.lose_live_group(tx, round, group_id)
    elseif not Aborts.apply(tx, round, group, aborts) then
      Cancellation.stop_live(tx, round, group, aborts, function(request)
        Longtail.cut_request(tx, round, group, request, nil, 0)
      end)
      -- Finished, and held without a place until the round was completed.
      if group.state == 'live' and group.live == 0 then Longtail.settle_group(tx, round, group) end
    end
    if group and group.state == 'live' then remaining = remaining + 1 end
  end
  local cursor = args.cursor + remaining
  local more = cursor < redis.call('ZCARD', tx.key:roundGroups(args.job, args.roundId)) and seen > 0
  return '{"aborts":' .. Reply.list(aborts) .. (more and ',"cursor":' .. Format.integer(cursor) or '')
    .. ',"settled":' .. tostring(round.settled) .. '}'
end

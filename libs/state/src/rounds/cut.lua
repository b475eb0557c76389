--[[ Cuts one page of the groups that a completed round did not accept. A request without a holder is `unfinished` at
once; a request that a worker has becomes `cutting` and is returned for an abort, again each time until the worker
confirms or is expired. In an open round, more free places are given to groups that are held.
A page ends with the group that brings it to 32 requests.
ARGV[1] JSON: {job, roundId, cursor}   cursor: number
Reply: CutPage
Events: longtail.requeued, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local round = Round.load(tx, args.job, args.roundId)
  if not round then return Reply.object({ aborts = {}, settled = true }) end
  if round.state == 'opening' then return Reply.object({ aborts = {}, settled = false }) end
  if round.state == 'open' then
    -- Gives more places, since more may have become free than one script gives.
    redis.call('SREM', tx.key.sweeps, Round.format_name(round))
    Rounds.review_round(tx, round)
    local more = redis.call('SISMEMBER', tx.key.sweeps, Round.format_name(round)) == 1 and Round.takes_results(round)
    return Reply.object({ aborts = {}, settled = false, cursor = more and 0 or nil })
  end

  local aborts = {}
  local cursor = Pages.walk(tx.key:roundGroups(args.job, args.roundId), args.cursor, function(group_id)
    local group = Group.load(tx, args.job, group_id)
    if not group then
      Recovery.lose_live_group(tx, round, group_id)
      return GroupDeletion.MAX_SAMPLES
    end
    if not Aborts.apply(tx, round, group, aborts) then
      Longtail.cut_live(tx, round, group, aborts)
      -- The group is finished; it was held without a place until the round was completed.
      if group.state == 'live' and group.live == 0 then GroupEnds.settle_group(tx, round, group) end
    end
    return group.launched
  end)
  return Reply.object({ aborts = aborts, cursor = cursor, settled = round.settled })
end

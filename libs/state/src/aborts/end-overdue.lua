--[[ Ends aborted attempts that live holders have not confirmed by the deadline. Marks leases that they have not
confirmed as ended by a fence. Nothing waits for a reply of these holders any more.
ARGV[1] JSON: {attempts, leaseIds}: OverdueArgs, at most 32 of each
Reply: ended           number of requests
Events: request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local ended = 0
  for _, one in ipairs(args.attempts) do
    local request = Request.load(tx, one.requestId)
    local group, round
    if request then group, round = Recovery.load_owners(tx, request) end
    -- An attempt that was confirmed meanwhile, or has a successor, stays as it is.
    local is_told = group and (group.state == 'aborting' or request.stopped)
    if is_told and Request.HELD[request.state] and request.attempt == one.attempt then
      Request.set(tx, request, { [one.fenced and 'fenced' or 'unconfirmed'] = true })
      Attempts.end_unwanted(tx, round, group, request, nil, 0)
      ended = ended + 1
    end
  end
  for _, lease_id in ipairs(args.leaseIds) do
    redis.call('SET', tx.key:fencedLease(lease_id), 1, 'PX', Format.integer(GroupEnds.kept_ms(tx)))
  end
  return Reply.object({ ended = ended })
end

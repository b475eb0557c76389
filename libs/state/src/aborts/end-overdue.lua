--[[ Ends what live holders have not confirmed until the deadline: their reply is not waited for any more.
ARGV[1] JSON: {attempts, leaseIds}: OverdueArgs, at most 32 of each
Reply: ended           number of requests
Events: request.aborted.
Flags: allow-oom ]]
return function(tx, args)
  local ended = 0
  for _, one in ipairs(args.attempts) do
    local request = Requests.load(tx, one.requestId)
    local group, round
    if request then group, round = Recovery.owners_of(tx, request) end
    -- Confirmed since, or another attempt.
    local is_told = group and (group.state == 'aborting' or request.stopped)
    if is_told and Requests.HELD[request.state] and request.attempt == one.attempt then
      redis.call('HSET', tx.key:request(request.id), one.fenced and 'fenced' or 'unconfirmed', 1)
      Attempts.end_unwanted(tx, round, group, request, nil, 0)
      ended = ended + 1
    end
  end
  for _, lease_id in ipairs(args.leaseIds) do
    redis.call('SET', tx.key:fencedLease(lease_id), 1, 'PX', Format.integer(Aborts.kept_ms(tx)))
  end
  return Reply.object({ ended = ended })
end

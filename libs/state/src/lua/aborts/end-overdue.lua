--[[ Ends what live holders have not confirmed until the deadline: their word is not waited for any more.
ARGV[1] JSON:
  attempts   list of {requestId, attempt, fenced}, at most 32; fenced: the epoch of the server it ran on is void
  leaseIds   list of string, at most 32: leases without a request of ours, of servers whose epoch is void
Reply: ended           number of requests
Errors: none. Facts: request.aborted.
Flags: allow-oom ]]
--- @include "../includes/attempts"
local args = cjson.decode(ARGV[1])
local ended = 0
for _, one in ipairs(args.attempts) do
  local request = load_request(one.requestId)
  local group = request and load_group(request.job, request.groupId)
  -- Confirmed since, or another attempt.
  local is_told = group and (group.state == 'aborting' or request.stopped)
  if is_told and HELD[request.state] and request.attempt == one.attempt then
    redis.call('HSET', key.request(request.id), one.fenced and 'fenced' or 'unconfirmed', 1)
    end_unwanted(load_round(request.job, group.roundId), group, request, nil, 0)
    ended = ended + 1
  end
end
for _, lease_id in ipairs(args.leaseIds) do
  redis.call('SET', key.fencedLease(lease_id), 1, 'PX', integer(abort_kept_ms()))
end
return '{"ended":' .. ended .. '}'

--[[ One request with its segments and the history of its group. Writes nothing but the clock.
ARGV[1] JSON: {requestId}
Reply: as a request of inspection/requests, in any state, and
       job, groupId, firstStep, cuts   of the group
       roundId                         of the group; absent in the long-tail queue
       segments, segmentsFollow?       segments of ended attempts, or none and true when these are too many for a reply
Errors: REQUEST_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local request = Request.load(tx, args.requestId)
  if not request then return Reply.fail('REQUEST_NOT_FOUND', 'There is no request ' .. args.requestId, 'requestId') end
  local group = Group.load(tx, request.job, request.groupId)
  local status = RequestStatus.of(tx, request, group)
  status.job, status.groupId, status.roundId = request.job, request.groupId, group and group.roundId or nil
  status.firstStep, status.cuts = group and group.firstStep, group and Group.read_past(tx, group).cuts or 0
  return InlineSegments.append(Reply.object(status), request.segments)
end

--[[ One request with its segments and what its group went through. Writes nothing but the clock.
ARGV[1] JSON: {requestId}
Reply: as a request of inspection/requests, in any state, and
       job, roundId, groupId, firstStep, cuts: of its group; roundId absent in the long-tail queue
       segments, segmentsFollow?: those of ended attempts; true and no segments when they are more than a page
Errors: REQUEST_NOT_FOUND.
Flags: allow-oom ]]
return function(tx, args)
  local request = Requests.load(tx, args.requestId)
  if not request then return Reply.fail('REQUEST_NOT_FOUND', 'There is no request ' .. args.requestId, 'requestId') end
  local status = RequestStatus.of(tx, request)
  local field = redis.call('HMGET', tx.key:group(request.job, request.groupId), 'roundId', 'firstStep', 'cuts')
  status.job, status.groupId, status.roundId = request.job, request.groupId, field[1] or nil
  status.firstStep, status.cuts = tonumber(field[2] or nil), tonumber(field[3] or 0)
  return InlineSegments.append(Reply.object(status), request.segments)
end

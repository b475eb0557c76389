--[[ The segments of a request, all of them: as they are stored, so that Redis only copies them.
ARGV[1] JSON: {requestId}
Reply: segments   list of Segment
Errors: REQUEST_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local field = redis.call('HMGET', tx.key:request(args.requestId), 'state', 'segments')
  if not field[1] then return Reply.fail('REQUEST_NOT_FOUND', 'There is no request ' .. args.requestId, 'requestId') end
  return Reply.object({}, { segments = field[2] or '[]' })
end

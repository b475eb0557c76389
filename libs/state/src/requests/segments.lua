--[[ All segments of a request, as they are stored, so that Redis only copies them.
ARGV[1] JSON: {requestId}
Reply: segments   list of Segment
Errors: REQUEST_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local request = Request.load(tx, args.requestId)
  if not request then return Reply.fail('REQUEST_NOT_FOUND', 'There is no request ' .. args.requestId, 'requestId') end
  return Reply.object({}, { segments = request.segments })
end

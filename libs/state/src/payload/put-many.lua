--[[ Stores one page of at most 128 payloads of a job, each of one chunk, within its quota. Safe to repeat.
ARGV[1] items: list of strings; quotaBytes: integer
ARGV[2] and later: the bytes of each payload
Reply: results: list of {} or {error}, in the order of the items. An error of one payload does not end the others
Errors: PAYLOAD_STORE_FULL, PAYLOAD_EXISTS ]]
return function(tx, args, argv)
  local used, results = PayloadKeys.read_used(tx), {}
  for position, item in ipairs(args.items) do
    local now_used, code, message = PayloadChunks.put(tx, used, item, 0, 1, argv[position + 1], args.quotaBytes)
    results[position] = now_used and '{}' or Reply.fail(code, message)
    used = now_used or used
  end
  PayloadKeys.set_used(tx, used)
  return '{"results":' .. Reply.joined(results) .. '}'
end

--[[ Stores one chunk of a payload, within the quota of the job. Safe to repeat. A complete payload never changes; in an
incomplete payload a chunk replaces the chunk with its index, and another chunk count starts the payload anew.
ARGV[1] item: string; index, count: integers; quotaBytes: integer
ARGV[2] the bytes of the chunk
Reply: receivedChunks: integer; usedBytes: integer
Errors: PAYLOAD_STORE_FULL, PAYLOAD_EXISTS ]]
return function(tx, args, argv)
  local used, received, message = PayloadChunks.put(tx, PayloadKeys.read_used(tx), args.item, args.index, args.count,
    argv[2], args.quotaBytes)
  if not used then return Reply.fail(received, message) end
  PayloadKeys.set_used(tx, used)
  return cjson.encode({ receivedChunks = received, usedBytes = used })
end

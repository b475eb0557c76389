--[[ Frees one page of at most 128 payloads of a job that nothing names any more: they stay readable until their
removal, and count no longer towards the quota. With `hold` the payloads are in use and count again, swept payloads too.
Safe to repeat.
ARGV[1] items: list of strings; hold: boolean
Reply: bytes: list of integers, -1 for a payload that is not there
Flags: allow-oom ]]
return function(tx, args)
  local bytes = {}
  for position, name in ipairs(args.items) do
    local there = redis.call('ZSCORE', tx.key.payloadIndex, name)
    if args.hold and not there and redis.call('PERSIST', PayloadKeys.item(tx, name)) == 1 then
      there = redis.call('ZADD', tx.key.payloadIndex, Format.integer(tx.now), name)
      PayloadKeys.use(tx, PayloadKeys.bytes(tx, name))
    end
    bytes[position] = there and PayloadKeys.bytes(tx, name) or -1
    if there and redis.call(args.hold and 'SREM' or 'SADD', tx.key.payloadFreed, name) == 1 then
      PayloadKeys.use(tx, args.hold and bytes[position] or -bytes[position])
    end
  end
  return '{"bytes":' .. Reply.list(bytes) .. '}'
end

--[[ Marks payloads as found to be owned now, so that the sweep comes back to them only later. One page of at most 128.
ARGV[1] items: list of strings
Reply: touched: integer
Flags: allow-oom ]]
return function(tx, args)
  local now = Format.integer(tx.now)
  local touched = 0
  for _, name in ipairs(args.items) do
    touched = touched + redis.call('ZADD', tx.key.payloadIndex, 'XX', 'CH', now, name)
  end
  return cjson.encode({ touched = touched })
end

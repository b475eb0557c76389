--[[ Payloads that were being removed are gone from the store.
ARGV[1] JSON: {refs: list of references, at most 128}
Reply: {}
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  for _, ref in ipairs(args.refs) do
    if redis.call('ZSCORE', tx.key.awaitingPayloads, ref) == '0' then
      redis.call('ZREM', tx.key.awaitingPayloads, ref)
      redis.call('HINCRBY', tx.key.meta, 'awaitingBytes', '-' .. (redis.call('HGET', tx.key.awaitingBytes, ref) or '0'))
      redis.call('HDEL', tx.key.awaitingBytes, ref)
    end
  end
  return '{}'
end

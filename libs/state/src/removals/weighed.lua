--[[ Notes the bytes of payloads that were freed; from then on they wait for their removal. A payload that is not stored
is forgotten.
ARGV[1] JSON: {payloads: list of {ref, bytes}, at most 128}   bytes: integer, or absent when the store has none
Reply: {}
Flags: allow-oom ]]
return function(tx, args)
  for _, payload in ipairs(args.payloads) do
    local freed_at = redis.call('ZSCORE', tx.key.freedPayloads, payload.ref)
    local bytes = payload.bytes
    if freed_at then redis.call('ZREM', tx.key.freedPayloads, payload.ref) end
    -- A payload that was freed a second time may wait already.
    if freed_at and bytes and redis.call('ZADD', tx.key.awaitingPayloads, 'NX', freed_at, payload.ref) == 1 then
      redis.call('HSET', tx.key.awaitingBytes, payload.ref, Format.integer(bytes))
      redis.call('HINCRBY', tx.key.meta, 'awaitingBytes', Format.integer(bytes))
    end
  end
  return '{}'
end

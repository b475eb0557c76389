--[[ Notes the bytes of payloads that were freed; from then on they wait for their removal. What is not stored is forgotten.
ARGV[1] JSON: {payloads: list of {ref, bytes}, at most 128}   bytes: integer, or absent when the store has none
Reply: {}
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/keys"
--- @include "../includes/reply"
for _, payload in ipairs(cjson.decode(ARGV[1]).payloads) do
  local freed_at = redis.call('ZSCORE', key.freedPayloads, payload.ref)
  local bytes = optional(payload.bytes)
  if freed_at then redis.call('ZREM', key.freedPayloads, payload.ref) end
  -- It may wait already: somebody said a second time that nothing names it.
  if freed_at and bytes and redis.call('ZADD', key.awaitingPayloads, 'NX', freed_at, payload.ref) == 1 then
    redis.call('HSET', key.awaitingBytes, payload.ref, string.format('%.0f', bytes))
    redis.call('HINCRBY', key.meta, 'awaitingBytes', string.format('%.0f', bytes))
  end
end
return '{}'

--[[ Payloads that were being removed are gone from the store.
ARGV[1] JSON: {refs: list of references, at most 128}
Reply: {}
Errors: none. Facts: none.
Flags: allow-oom ]]
--- @include "../includes/keys"
for _, ref in ipairs(cjson.decode(ARGV[1]).refs) do
  if redis.call('ZSCORE', key.awaitingPayloads, ref) == '0' then
    redis.call('ZREM', key.awaitingPayloads, ref)
    redis.call('HINCRBY', key.meta, 'awaitingBytes', '-' .. (redis.call('HGET', key.awaitingBytes, ref) or '0'))
    redis.call('HDEL', key.awaitingBytes, ref)
  end
end
return '{}'

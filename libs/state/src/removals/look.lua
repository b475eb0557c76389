--[[ Lists payloads that wait for their removal from the payload store. Marks one page of payloads as being removed:
payloads that were freed long ago, and, while all waiting payloads have more than `maxBytes`, the oldest payloads that
were freed before the loss window. A Redis that lost its last seconds names no such payload, and nothing may name a
marked payload. For one loss window after a restart of Redis no payload is marked: this Redis may be an old primary, and
a new primary without its last transitions may still name the payloads.
ARGV[1] JSON: {deleteAfterMs, lossWindowMs, maxBytes}   integers
Reply: RemovalLook, with at most 128 references in each list
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local now = tx.now
  local bytes = tonumber(redis.call('HGET', tx.key.meta, 'awaitingBytes') or 0)
  local unweighed = redis.call('ZRANGE', tx.key.freedPayloads, 0, PAGE - 1)
  local page = Generation.age_ms(tx) < args.lossWindowMs and {} or redis.call('ZRANGEBYSCORE', tx.key.awaitingPayloads,
    '-inf', Format.integer(now - args.lossWindowMs), 'WITHSCORES', 'LIMIT', 0, PAGE)
  local due, left = {}, bytes
  for position = 1, #page, 2 do
    local ref, freed_at = page[position], tonumber(page[position + 1])
    if freed_at > now - args.deleteAfterMs and left <= args.maxBytes then break end
    left = left - tonumber(redis.call('HGET', tx.key.awaitingBytes, ref) or 0)
    redis.call('ZADD', tx.key.awaitingPayloads, 0, ref)
    table.insert(due, ref)
  end
  local awaiting = redis.call('ZCARD', tx.key.freedPayloads) + redis.call('ZCARD', tx.key.awaitingPayloads)
  return Reply.object({ awaiting = awaiting, awaitingBytes = bytes, unweighed = unweighed, due = due })
end

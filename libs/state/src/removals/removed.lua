--[[ Takes payloads that were being removed off the queue: they are gone from the store.
ARGV[1] JSON: {refs: list of references, at most 128}
Reply: {}
Flags: allow-oom ]]
return function(tx, args)
  for _, ref in ipairs(args.refs) do
    if redis.call('ZSCORE', tx.key.awaitingPayloads, ref) == '0' then FreedPayloads.wait_no_more(tx, ref) end
  end
  return '{}'
end

--[[ Makes a generation the only one of its request in all replicas of the gateway. It takes the place of one without
readers, and of one whose replica is gone.
ARGV[1] JSON: {identity, generation, workerId, workerEpoch, digest, isUnread, isWaiting, expiresMs}   strings;
    isUnread: boolean, another replica may take the request over; isWaiting: boolean, another generation has held it;
    expiresMs: number
Reply: state   `claimed`; `held`, by another generation; `other`: by one with another digest; `ended`: the one that has
               held it has ended
       from    with `claimed`: generation in whose place it is
       saved   with `claimed`: saved tokens, if there are any
Safe to repeat. Takes less than 500 bytes: what runs must be able to take part when Redis is full.
Flags: allow-oom ]]
return function(tx, args)
  local key = tx.key:partialOwner(args.identity)
  local text = redis.call('GET', key)
  local owner = text and cjson.decode(text)
  local is_own = owner and owner.generation == args.generation
  if owner and not is_own and WorkerFence.is_current(tx, owner.workerId, owner.workerEpoch) then
    if owner.digest ~= args.digest then return Reply.object({ state = 'other' }) end
    if not owner.isUnread then return Reply.object({ state = 'held' }) end
  end
  if not owner and args.isWaiting then return Reply.object({ state = 'ended' }) end
  local claim = { generation = args.generation, workerId = args.workerId, workerEpoch = args.workerEpoch,
    digest = args.digest, isUnread = args.isUnread }
  redis.call('SET', key, cjson.encode(claim), 'PX', Format.integer(args.expiresMs))
  local saved = redis.call('GET', tx.key:partial(args.identity))
  return Reply.object({ state = 'claimed', from = owner and not is_own and owner.generation or nil },
    { saved = saved or nil })
end

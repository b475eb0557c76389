--[[ Claims a request for one response (`generation`), so that no other replica of the gateway generates it. The claim
is taken over from a response without readers, and from a response whose replica is gone.
ARGV[1] JSON: {identity, generation, workerId, workerEpoch, digest, isUnread, isWaiting, expiresMs}
  isUnread    boolean: another replica may take the request over
  isWaiting   boolean: another response has held the request
  expiresMs   number; all others are strings
Reply: state   `claimed`; `held`: by another response; `other`: by a response with another digest; `ended`: the response
               that held the request has ended
       from    with `claimed`: response whose claim was taken over
       saved   with `claimed`: saved tokens, if there are any
       pieces  with `saved`: what later saves have added, in order
Safe to repeat. A claim takes less than 500 bytes, so that running requests can be claimed when Redis is full.
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
  local pieces = saved and redis.call('LRANGE', tx.key:partialPieces(args.identity), 0, -1) or {}
  return Reply.object({ state = 'claimed', from = owner and not is_own and owner.generation or nil },
    { saved = saved or nil, pieces = pieces[1] and Reply.joined(pieces) or nil })
end

--[[ The sampling parameters of a session.
ARGV[1] JSON: {id, tokenId}   strings; tokenId: of the caller: parameters are for requests of the session's token only
Reply: sampling   object; absent: the session has none
       isUsed     boolean: a session of the pool has, or had, sampling parameters
Flags: no-writes ]]
return function(tx, args)
  local held = redis.call('HMGET', tx.key:trajectory(args.id), 'about', 'sampling')
  local is_own = held[2] and cjson.decode(held[1]).tokenId == args.tokenId
  local is_used = redis.call('HEXISTS', tx.key.meta, 'samplingSinceMs') == 1
  return Reply.object({ isUsed = is_used }, { sampling = is_own and held[2] or nil })
end

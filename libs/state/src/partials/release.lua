--[[ Ends the claim of a response. Nothing changes if another response has claimed the request.
ARGV[1] JSON: {identity, generation, keepsSaved}   strings; keepsSaved: boolean, saved tokens are not removed
Reply: {}
Safe to repeat.
Flags: allow-oom ]]
return function(tx, args)
  local key = tx.key:partialOwner(args.identity)
  local text = redis.call('GET', key)
  if not text or cjson.decode(text).generation ~= args.generation then return '{}' end
  redis.call('DEL', key)
  if not args.keepsSaved then redis.call('DEL', tx.key:partial(args.identity), tx.key:partialPieces(args.identity)) end
  return '{}'
end

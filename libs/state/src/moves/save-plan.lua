--[[ Stores one page of the moves of a plan. A plan that is stored whole stays as it is.
ARGV[1] JSON: {planId, offset, moves, summary, digest, keptMs}
  offset    number of moves in the pages before
  moves     list of KeptMove as JSON texts, at most 128
  summary   text, only with the last page: then the plan is whole
  digest    digest of the request; a call with another digest is refused
Reply: whole   boolean: all of the plan is stored
Errors: VALIDATION_FAILED. ]]
return function(tx, args)
  local hash, moves = tx.key:plan(args.planId), tx.key:planMoves(args.planId)
  local known = redis.call('HMGET', hash, 'digest', 'summary')
  if known[1] and known[1] ~= args.digest then
    return Reply.fail('VALIDATION_FAILED', 'The planId was used for another plan', 'planId')
  end
  if known[2] then return Reply.object({ whole = true }) end
  redis.call('HSET', hash, 'digest', args.digest)
  if #args.moves > 0 and redis.call('LLEN', moves) == args.offset then
    redis.call('RPUSH', moves, unpack(args.moves))
  end
  if args.summary then redis.call('HSET', hash, 'summary', args.summary, 'plannedAtMs', tx.now, 'sentMoves', 0) end
  redis.call('PEXPIRE', hash, args.keptMs)
  redis.call('PEXPIRE', moves, args.keptMs)
  return Reply.object({ whole = args.summary ~= nil })
end

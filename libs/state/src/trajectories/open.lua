--[[ Starts the trajectory of a session, unless there is one.
ARGV[1] JSON: {id, about, isDrawn?, sampling?, stamp?}   strings
  about      JSON
  isDrawn    boolean: no session had this id before
  sampling   JSON: sampling parameters of all requests of the session, which replace earlier ones of the same token
  stamp      the latest that the caller has seen of the pool
Reply: about           the session, as the first call described it
       made            boolean: this call has started the trajectory
       samplingAgeMs   with `sampling`: how long ago the first session of the pool got sampling parameters
       stamp           of the pool
Safe to repeat. ]]
return function(tx, args)
  local key = tx.key:trajectory(args.id)
  local made = redis.call('HSETNX', key, 'about', args.about) == 1
  Trajectories.set_backs(tx, args.id, args.stamp, made and not args.isDrawn)
  Trajectories.touch(tx, args.id)
  local about = redis.call('HGET', key, 'about')
  local reply = { made = made }
  if args.sampling and cjson.decode(about).tokenId == cjson.decode(args.about).tokenId then
    redis.call('HSET', key, 'sampling', args.sampling)
    redis.call('HSETNX', tx.key.meta, 'samplingSinceMs', Format.integer(tx.now))
    reply.samplingAgeMs = tx.now - tonumber(redis.call('HGET', tx.key.meta, 'samplingSinceMs'))
  end
  return Generation.reply(tx, reply, { about = about })
end

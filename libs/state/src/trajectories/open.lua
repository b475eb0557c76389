--[[ Starts the trajectory of a session, unless there is one.
ARGV[1] JSON: {id, about, isDrawn?, stamp?}   strings; about: JSON; isDrawn: boolean, no session had this id before;
        stamp: the latest that the caller has seen of the pool
Reply: about   the session, as the first call described it
       made    boolean: this call has started the trajectory
       stamp   of the pool
Safe to repeat. ]]
return function(tx, args)
  local key = tx.key:trajectory(args.id)
  local made = redis.call('HSETNX', key, 'about', args.about) == 1
  Trajectories.set_backs(tx, args.id, args.stamp, made and not args.isDrawn)
  Trajectories.touch(tx, args.id)
  local about = redis.call('HGET', key, 'about')
  return Generation.reply(tx, { made = made }, { about = about })
end

--[[ Begins the trajectory of a session, unless there is one. Safe to repeat.
ARGV[1] JSON: {id, about}   strings; about: JSON
Reply: about   the session, of the first call
       made    boolean ]]
return function(tx, args)
  local made = redis.call('HSETNX', tx.key:trajectory(args.id), 'about', args.about) == 1
  Trajectories.set_backs(tx, args.id)
  Trajectories.touch(tx, args.id)
  local about = redis.call('HGET', tx.key:trajectory(args.id), 'about')
  return Reply.object({ made = made }, { about = about })
end

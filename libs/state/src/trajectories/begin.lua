--[[ Starts a turn of a recorded session. A repeat replaces the turn, and from then on only the repeat may record the
turn. A request identifies its turn; a request without an id from its client does so only until the turn is recorded.
ARGV[1] JSON: {id, tokenId, identity, generation, hasOwnId, stamp?}   strings; hasOwnId: boolean; stamp: the latest that
        the caller has seen of the pool
Reply: job       of the session; absent if the session is not recorded
       turn      number
       number    of the turn for clients: differs from `turn` after Redis was set back
       stamp     of the pool
       refusal   why there is no turn: `FORBIDDEN`, the session belongs to another token; `TRAJECTORY_FULL`
Safe to repeat: the same response (`generation`) gets the same turn. A turn takes less than 300 bytes, so that turns are
known to be missing even when Redis is full.
Flags: allow-oom ]]
return function(tx, args)
  local key = tx.key:trajectory(args.id)
  local about = redis.call('HGET', key, 'about')
  if not about then return '{}' end
  local session = cjson.decode(about)
  local function refuse(reason) return Reply.object({ job = session.job, refusal = reason }) end
  if session.tokenId ~= args.tokenId then return refuse('FORBIDDEN') end
  local set_backs = Trajectories.set_backs(tx, args.id, args.stamp)
  local named = 'named:' .. args.identity
  local turn = tonumber(redis.call('HGET', key, named) or nil)
  local is_same = turn and redis.call('HGET', key, 'holder:' .. turn) == args.generation
  local is_recorded = turn and redis.call('HEXISTS', key, 'turn:' .. turn) == 1
  if not turn or not is_same and is_recorded and not args.hasOwnId then
    if Trajectories.count(tx, args.id) >= Trajectories.MAX_TURNS then return refuse('TRAJECTORY_FULL') end
    turn = redis.call('HINCRBY', key, 'turns', 1)
    redis.call('HSET', key, named, turn, 'begun:' .. turn, Format.integer(tx.now))
  end
  redis.call('HSET', key, 'holder:' .. turn, args.generation)
  redis.call('HDEL', key, 'error:' .. turn)
  Trajectories.touch(tx, args.id)
  return Generation.reply(tx, { job = session.job, turn = turn, number = Trajectories.number(turn, set_backs) })
end

--[[ The trajectory of a session.
ARGV[1] JSON: {id, stamp?}   strings; stamp: the latest that the caller has seen of the pool
Reply: about     the session; absent if it is not recorded
       sampling  sampling parameters of its requests; absent without any
       turns     list of records, by turn
       missing   list of {turn, startedAtMs, reason}: turns without a record; UNFINISHED: the response is still being
                 generated, or its replica has died. SET_BACK: Redis was set back then, and this turn and later turns,
                 up to the next listed turn, may be lost
       setBacks  list of {after, offset}, by which turns have numbers
       stamp     of the pool
Safe to repeat.
Flags: allow-oom ]]
return function(tx, args)
  local held = redis.call('HMGET', tx.key:trajectory(args.id), 'about', 'sampling')
  local about = held[1]
  if not about then return '{}' end
  local set_backs = Trajectories.set_backs(tx, args.id, args.stamp)
  local count = Trajectories.count(tx, args.id)
  local begun = Trajectories.each(tx, args.id, 'begun', count)
  local errors = Trajectories.each(tx, args.id, 'error', count)
  local turns, missing = {}, {}
  for turn, record in ipairs(Trajectories.each(tx, args.id, 'turn', count)) do
    if record then
      table.insert(turns, record)
    else
      table.insert(missing, {
        turn = Trajectories.number(turn, set_backs), startedAtMs = tonumber(begun[turn]),
        reason = errors[turn] or 'UNFINISHED',
      })
    end
  end
  for index, one in ipairs(set_backs) do
    local lost = Trajectories.number(one.after, { unpack(set_backs, 1, index - 1) }) + 1
    table.insert(missing, { turn = lost, startedAtMs = one.atMs, reason = 'SET_BACK' })
  end
  return Generation.reply(tx, { missing = missing, setBacks = set_backs }, { about = about,
    sampling = held[2] or nil, turns = Reply.joined(turns) })
end

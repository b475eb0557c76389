--[[ What is recorded of a session.
ARGV[1] JSON: {id}   string
Reply: about     the session; absent if it is not recorded
       turns     list of records, by turn
       missing   list of {turn, startedAtMs, reason}: turns without a record; UNFINISHED: its generation runs, or its
                 replica has died
Flags: no-writes ]]
return function(tx, args)
  local about = redis.call('HGET', tx.key:trajectory(args.id), 'about')
  if not about then return '{}' end
  local count = Trajectories.count(tx, args.id)
  local begun = Trajectories.each(tx, args.id, 'begun', count)
  local errors = Trajectories.each(tx, args.id, 'error', count)
  local turns, missing = {}, {}
  for turn, record in ipairs(Trajectories.each(tx, args.id, 'turn', count)) do
    if record then
      table.insert(turns, record)
    else
      table.insert(missing, { turn = turn, startedAtMs = tonumber(begun[turn]), reason = errors[turn] or 'UNFINISHED' })
    end
  end
  return Reply.object({ missing = missing }, { about = about, turns = Reply.joined(turns) })
end

--[[ Records a turn that has ended. The payload of a turn that is not recorded is freed.
ARGV[1] JSON: {id, turn, generation, ref, record, sequence, parent?, parentSequence?, stamp?}   strings
  turn             number
  generation       holder of the turn
  ref              reference of the payload
  record           JSON
  sequence         tokens|digest|generation
  parent           number of the turn that this turn extends
  parentSequence   sequence of the parent
  stamp            the latest that the caller has seen of the pool
Reply: outcome   `recorded`; `replaced`: a repeat holds the turn, or later turns extend its first record; `deleted`: the
                 session was deleted; `changed`: the parent has another record now, find the parent again
       stamp     of the pool
Safe to repeat: a turn that has this record is `recorded`. ]]
return function(tx, args)
  local key, turn = tx.key:trajectory(args.id), args.turn
  Generation.current(tx, args.stamp)
  local function reply(outcome) return Generation.reply(tx, { outcome = outcome }) end
  local function discard(outcome)
    FreedPayloads.free(tx, args.ref)
    return reply(outcome)
  end
  local held = redis.call('HMGET', key, 'about', 'holder:' .. turn, 'ref:' .. turn, 'extended:' .. turn)
  if held[3] == args.ref then return reply('recorded') end
  if not held[1] then return discard('deleted') end
  if held[2] ~= args.generation or held[3] and held[4] then return discard('replaced') end
  if args.parent then
    if redis.call('HGET', key, 'sequence:' .. args.parent) ~= args.parentSequence then return discard('changed') end
    redis.call('HSET', key, 'extended:' .. args.parent, 1)
  end
  if held[3] then FreedPayloads.free(tx, held[3]) end
  redis.call('HSET', key, 'turn:' .. turn, args.record, 'ref:' .. turn, args.ref, 'sequence:' .. turn, args.sequence)
  redis.call('HDEL', key, 'error:' .. turn)
  Trajectories.touch(tx, args.id)
  return reply('recorded')
end

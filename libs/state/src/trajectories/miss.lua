--[[ Notes why a turn has no record. Nothing changes if the turn has a record, or a repeat holds it.
ARGV[1] JSON: {id, turn, generation, error}   id, generation: strings; turn: number; error: code
Reply: {}
Safe to repeat.
Flags: allow-oom ]]
return function(tx, args)
  local key, turn = tx.key:trajectory(args.id), args.turn
  local held = redis.call('HMGET', key, 'holder:' .. turn, 'turn:' .. turn)
  if held[1] == args.generation and not held[2] then redis.call('HSET', key, 'error:' .. turn, args.error) end
  return '{}'
end

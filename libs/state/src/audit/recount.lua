--[[ Counts one page of requests of a job for its recount. A transition that changes a counted request changes the sums
of the recount too (Counts.count_again). A recount is given up when Redis was restarted or set back since its start,
because the scan for the keys of requests may have missed some.
ARGV[1] JSON: {job; id: of the recount, random; begins: boolean; requestIds: list, at most 128}
Reply: goesOn    boolean; false: another recount is under way, or this recount was given up
Flags: allow-oom ]]
return function(tx, args)
  local LIFE_S = 60 -- Redis keeps a recount whose replica has died for so long
  local hash = tx.key:recount(args.job)
  if args.begins and not Counts.is_recount_outdated(tx, args.job) then redis.call('HSETNX', hash, 'id', args.id)
  elseif args.begins then
    redis.call('UNLINK', hash)
    redis.call('HSET', hash, 'id', args.id, 'generation', (Generation.current(tx)))
  end
  if redis.call('HGET', hash, 'id') ~= args.id or Counts.is_recount_outdated(tx, args.job) then
    return '{"goesOn":false}'
  end
  redis.call('EXPIRE', hash, LIFE_S)
  for _, id in ipairs(args.requestIds) do
    local request = Request.load(tx, id)
    if request and request.recount ~= args.id then
      Request.set(tx, request, { recount = args.id })
      redis.call('HINCRBY', hash, request.state, 1)
    end
  end
  return '{"goesOn":true}'
end

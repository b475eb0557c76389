--[[ Ends a recount when its job was checked as a whole: counts, groups and rounds. The job is not marked any more,
unless a lost record or a wrong count was found while the recount was under way: then another recount follows.
ARGV[1] JSON: {job; id: of the recount}
Reply: ended     boolean: the job is not marked any more
Flags: allow-oom ]]
return function(tx, args)
  local hash = tx.key:recount(args.job)
  local known = redis.call('HMGET', hash, 'id', 'again')
  if known[1] ~= args.id or Counts.is_recount_outdated(tx, args.job) then return '{"ended":false}' end
  redis.call('UNLINK', hash)
  if known[2] then return '{"ended":false}' end
  redis.call('SREM', tx.key.miscountedJobs, args.job)
  return '{"ended":true}'
end

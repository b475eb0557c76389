--[[ The rounds of a job whose summaries are kept: those that are not folded, and the last 16 others; latest step first.
ARGV[1] JSON: {job}
Reply: rounds   list of {roundId, step, kind, state, neededGroups, acceptedGroups, openedAtMs, completedAtMs?}
Errors: JOB_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  if redis.call('EXISTS', tx.key:job(args.job)) == 0 then return Trainer.no_job(args.job) end
  local rounds = {}
  for _, round_id in ipairs(redis.call('ZREVRANGE', tx.key:rounds(args.job), 0, -1)) do
    local field = redis.call('HMGET', tx.key:round(args.job, round_id), 'step', 'kind', 'state', 'neededGroups',
      'acceptedGroups', 'openedAtMs', 'completedAtMs')
    if field[3] then
      table.insert(rounds, {
        roundId = round_id, step = tonumber(field[1]), kind = field[2], state = field[3],
        neededGroups = tonumber(field[4]), acceptedGroups = tonumber(field[5] or 0), openedAtMs = tonumber(field[6]),
        completedAtMs = tonumber(field[7] or nil),
      })
    end
  end
  return '{"rounds":' .. Reply.list(rounds) .. '}'
end

--[[ The rounds of a job whose summaries are kept: rounds that are not folded, and the last 16 folded rounds; latest
step first.
ARGV[1] JSON: {job, limit}: ListRoundsRequest
Reply: rounds   list of {roundId, step, kind, state, neededGroups, acceptedGroups, openedAtMs, completedAtMs?}
Errors: JOB_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  if not Job.exists(tx, args.job) then return Trainer.no_job(args.job) end
  local rounds = {}
  for _, round_id in ipairs(redis.call('ZREVRANGE', tx.key:rounds(args.job), 0, -1)) do
    if #rounds == args.limit then break end
    local round = Round.load(tx, args.job, round_id)
    if round then
      Round.read_rest(tx, round)
      table.insert(rounds, {
        roundId = round_id, step = round.step, kind = round.kind, state = round.state,
        neededGroups = round.neededGroups, acceptedGroups = round.acceptedGroups, openedAtMs = round.openedAtMs,
        completedAtMs = round.completedAtMs,
      })
    end
  end
  return '{"rounds":' .. Reply.list(rounds) .. '}'
end

--[[ The data from which the next round is planned; zeros for a job that is not there.
ARGV[1] JSON: {job, trainerEpoch, stamp; history: also the lengths and times of the last 8 closed rounds, and the
  groups of rounds under `auto`}
Reply: JobProgress
Errors: GENERATION_CHANGED; with trainerEpoch: JOB_NOT_FOUND, FENCED, JOB_IN_USE.
Flags: allow-oom ]]
return function(tx, args)
  local refused = Trainer.refusal(tx, args)
  if refused then
    return Job.load(tx, args.job).deleting and Trainer.deleting() or refused
  end
  local known = Job.load(tx, args.job)
  local steps = known.stepsTrained

  -- Groups by domain, then by finished or censored, then by bin.
  local function lengths_of(step)
    local lengths = {}
    for name, count in pairs(Hashes.all(tx.key:lengths(args.job, Format.integer(step)))) do
      local domain, kind, bin = string.match(name, '^(.*)|(%a+)|(%d+)$')
      lengths[domain] = lengths[domain] or { finished = {}, censored = {} }
      lengths[domain][kind][bin] = tonumber(count)
    end
    return lengths
  end

  local function summary_of(round)
    Round.read_rest(tx, round)
    return { acceptedGroups = round.acceptedGroups, acceptedTokens = round.acceptedTokens,
      longestTokens = round.longestTokens, bulkGroups = round.bulkGroups, bulkMs = round.bulkMs,
      tailGroups = round.tailGroups, tailMs = round.tailMs, newGroups = round.newGroups, step = round.step,
      openedAtMs = round.openedAtMs, completedAtMs = round.completedAtMs or 0,
      durationMs = (round.completedAtMs or 0) - round.openedAtMs, lengths = lengths_of(round.step),
      recorded = redis.call('GET', tx.key:roundRecorded(args.job, round.roundId)) or nil }
  end

  local history = {}
  for _, round_id in ipairs(args.history and redis.call('ZRANGEBYSCORE', tx.key:rounds(args.job),
    steps - Lengths.HISTORY_STEPS + 1, steps) or {}) do
    local round = Round.load(tx, args.job, round_id)
    if round and round.state == 'closed' then table.insert(history, summary_of(round)) end
  end
  local longtail = tx.key:longtail(args.job)
  local due = Format.integer((steps + 2) * LongtailQueue.STEP_OF_PIN)
  return Generation.reply(tx, {
    stepsTrained = steps, settlingGroups = known.settlingGroups, openRoundId = known.openRoundId,
    lastRoundId = known.lastRoundId,
    longtailGroups = redis.call('ZCARD', longtail), finishedGroups = redis.call('ZCOUNT', longtail, '-inf', '(0'),
    pinnedGroups = redis.call('ZCOUNT', tx.key:pins(args.job), '-inf', '(' .. due), history = history,
  }, { control = known.tailControl })
end

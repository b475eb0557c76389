--[[ What the plan of the next round is made from; zeros for a job that is not there.
ARGV[1] JSON: {job, trainerEpoch, stamp; history: the lengths and times of the last 8 closed rounds are wanted, and
  of those under `auto` the groups}
Reply: JobProgress
Errors: GENERATION_CHANGED; with trainerEpoch: JOB_NOT_FOUND, FENCED, JOB_IN_USE.
Flags: allow-oom ]]
return function(tx, args)
  local NUMBERS = { 'acceptedGroups', 'acceptedTokens', 'longestTokens', 'bulkGroups', 'bulkMs', 'tailGroups', 'tailMs',
    'newGroups', 'step', 'openedAtMs', 'completedAtMs' }
  local refused = Trainer.refusal(tx, args)
  if refused then
    return redis.call('HEXISTS', tx.key:job(args.job), 'deleting') == 1 and Trainer.deleting() or refused
  end
  local field = redis.call('HMGET', tx.key:job(args.job), 'stepsTrained', 'settlingGroups', 'openRoundId',
    'tailControl', 'lastRoundId')
  local steps = tonumber(field[1] or 0)

  -- Domain -> {finished, censored}, each bin -> groups.
  local function lengths_of(step)
    local lengths = {}
    for name, count in pairs(Hashes.all(tx.key:lengths(args.job, Format.integer(step)))) do
      local domain, kind, bin = string.match(name, '^(.*)|(%a+)|(%d+)$')
      lengths[domain] = lengths[domain] or { finished = {}, censored = {} }
      lengths[domain][kind][bin] = tonumber(count)
    end
    return lengths
  end

  local function record_of(round_id)
    local values, record = redis.call('HMGET', tx.key:round(args.job, round_id), unpack(NUMBERS)), {}
    for position, name in ipairs(NUMBERS) do record[name] = tonumber(values[position] or 0) end
    record.durationMs, record.lengths = record.completedAtMs - record.openedAtMs, lengths_of(record.step)
    record.recorded = redis.call('GET', tx.key:roundRecorded(args.job, round_id)) or nil
    return record
  end

  local history = {}
  for _, round_id in ipairs(args.history and redis.call('ZRANGEBYSCORE', tx.key:rounds(args.job),
    steps - Lengths.HISTORY_STEPS + 1, steps) or {}) do
    local is_closed = redis.call('HGET', tx.key:round(args.job, round_id), 'state') == 'closed'
    if is_closed then table.insert(history, record_of(round_id)) end
  end
  local longtail = tx.key:longtail(args.job)
  local due = Format.integer((steps + 2) * Longtail.STEP_OF_PIN)
  return Generation.reply(tx, {
    stepsTrained = steps, settlingGroups = tonumber(field[2] or 0), openRoundId = field[3] or nil,
    lastRoundId = field[5] or nil,
    longtailGroups = redis.call('ZCARD', longtail), finishedGroups = redis.call('ZCOUNT', longtail, '-inf', '(0'),
    pinnedGroups = redis.call('ZCOUNT', tx.key:pins(args.job), '-inf', '(' .. due), history = history,
  }, { control = field[4] or nil })
end

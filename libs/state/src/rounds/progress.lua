--[[ What the plan of the next round is made from.
ARGV[1] JSON:
  job            string
  history        boolean: the lengths and times of the last 8 closed rounds are wanted
  trainerEpoch   string or absent
  stamp          of the trainer, or absent
Reply: stepsTrained, longtailGroups, settlingGroups   numbers; all 0 for a job that is not there
       finishedGroups, pinnedGroups                   numbers of the queue: finished, and to be taken in the next step
       openRoundId                                    string, absent when no round is open
       control                                        what an adaptive policy kept, or absent
       history                                        list of {acceptedGroups, acceptedTokens, longestTokens,
                                                      durationMs, bulkGroups, bulkMs, tailGroups, tailMs, lengths},
                                                      oldest first
       stamp                                          string
Errors: GENERATION_CHANGED; with trainerEpoch: JOB_NOT_FOUND, FENCED. Events: none.
Flags: allow-oom ]]
return function(tx, args)
  local STEP_OF_PIN = 2 ^ 32
  local NUMBERS = { 'acceptedGroups', 'acceptedTokens', 'longestTokens', 'bulkGroups', 'bulkMs', 'tailGroups', 'tailMs',
    'step', 'openedAtMs', 'completedAtMs' }
  local epoch = Reply.optional(args.trainerEpoch)
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or (epoch and Trainer.error(tx, args.job,
    epoch))
  if refused then return refused end
  local field = redis.call('HMGET', tx.key:job(args.job), 'stepsTrained', 'settlingGroups', 'openRoundId',
    'tailControl')
  local steps = tonumber(field[1] or 0)

  -- Domain -> {finished, censored}, each bin -> groups.
  local function lengths_of(step)
    local lengths = {}
    local counts = redis.call('HGETALL', tx.key:lengths(args.job, Format.integer(step)))
    for position = 1, #counts, 2 do
      local domain, kind, bin = string.match(counts[position], '^(.*)|(%a+)|(%d+)$')
      lengths[domain] = lengths[domain] or { finished = {}, censored = {} }
      lengths[domain][kind][bin] = tonumber(counts[position + 1])
    end
    return lengths
  end

  local function record_of(round_id)
    local values = redis.call('HMGET', tx.key:round(args.job, round_id), unpack(NUMBERS))
    local record = {}
    for position, name in ipairs(NUMBERS) do record[name] = tonumber(values[position] or 0) end
    record.durationMs, record.lengths = record.completedAtMs - record.openedAtMs, lengths_of(record.step)
    return record
  end

  local history = {}
  for _, round_id in ipairs(args.history and redis.call('ZRANGEBYSCORE', tx.key:rounds(args.job),
    steps - Lengths.HISTORY_STEPS + 1, steps) or {}) do
    if redis.call('HGET', tx.key:round(args.job, round_id), 'state') == 'closed' then table.insert(history,
      record_of(round_id)) end
  end
  local longtail = tx.key:longtail(args.job)
  return Generation.stamped(tx, cjson.encode({
    stepsTrained = steps, settlingGroups = tonumber(field[2] or 0), openRoundId = field[3] or nil,
    longtailGroups = redis.call('ZCARD', longtail), finishedGroups = redis.call('ZCOUNT', longtail, '-inf', '(0'),
    pinnedGroups = redis.call('ZCOUNT', tx.key:pins(args.job), '-inf', '('
      .. Format.integer((steps + 2) * STEP_OF_PIN)),
  }):sub(1, -2) .. (field[4] and ',"control":' .. field[4] or '') .. ',"history":' .. Reply.list(history) .. '}')
end

--[[ The rounds of a job against their lists, and the job against its rounds. Nothing while the job is being restored.
ARGV[1] JSON: {job; repair: boolean}
Reply: findings   list of {check, where, says, repaired}
       rounds     list of roundId
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local job = redis.call('HMGET', tx.key:job(args.job), 'openRoundId', 'settlingGroups', 'restoring')
  local settling, listed = 0, {}

  local function check(name, where, is_right, says, mend)
    if is_right then return end
    if args.repair and mend then mend() end
    Findings.add(tx, name, where, says, args.repair and mend ~= nil)
  end

  -- Groups on their way to the queue, by the round they have left.
  local leaving = {}
  for _, name in ipairs(redis.call('ZRANGE', tx.key.leavingGroups, 0, -1)) do
    local owner, group_id = string.match(name, '^([^/]+)/(.+)$')
    local round_id = owner == args.job and redis.call('HGET', tx.key:group(owner, group_id), 'roundId')
    if round_id then leaving[round_id] = (leaving[round_id] or 0) + 1 end
  end

  local function check_round(round_id)
    local where = args.job .. '/' .. round_id
    local round = Rounds.load(tx, args.job, round_id)
    if not round then
      return check('round-without-hash', where, false, 'in the list of rounds, but there is none', function()
        redis.call('ZREM', tx.key:rounds(args.job), round_id)
      end)
    end
    table.insert(listed, round_id)
    local field = redis.call('HMGET', tx.key:round(args.job, round_id), 'leavingGroups', 'folded')
    local accepted = redis.call('LLEN', tx.key:roundAccepted(args.job, round_id))
    local live = redis.call('ZCARD', tx.key:roundGroups(args.job, round_id)) + (round.state == 'cancelled' and accepted
      or 0)
    check('round-live', where, round.live == live, string.format('%s: live %d, listed %d', round.state, round.live,
      live), function()
      redis.call('HSET', tx.key:round(args.job, round_id), 'liveGroups', live)
      round.live = live
      -- It had been waiting for groups that are not there, or gone on without some that are.
      redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
    end)
    -- The list of a closed round is folded away.
    local counts_accepted = Rounds.takes_results(round) or round.state == 'completed'
    check('round-accepted', where, not counts_accepted or round.accepted == accepted,
      string.format('%s: accepted %d, listed %d', round.state, round.accepted, accepted), function()
        redis.call('HSET', tx.key:round(args.job, round_id), 'acceptedGroups', accepted)
        round.accepted = accepted
        redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
      end)
    local settled = not Rounds.takes_results(round) and round.live == 0
    check('round-settled', where, round.settled == settled, string.format('%s: live %d', round.state, round.live),
      function()
      redis.call('HSET', tx.key:round(args.job, round_id), 'settled', settled and 1 or 0)
      round.settled = settled
    end)
    local is_swept = round.state == 'opening' or (round.state == 'completed' and not round.settled)
      or ((round.state == 'closed' or round.state == 'cancelled') and field[2] ~= '1')
    check('round-not-swept', where, not is_swept or redis.call('SISMEMBER', tx.key.sweeps,
      Rounds.sweep_name(round)) == 1, round.state,
      function() redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round)) end)
    if not Rounds.takes_results(round) and round.cancelMode ~= 'drop' then settling = settling + round.live end
    local left = leaving[round_id] or 0
    check('round-leaving', where, tonumber(field[1] or 0) == left,
      string.format('leaving %s, listed %d', field[1] or '0', left), function()
        redis.call('HSET', tx.key:round(args.job, round_id), 'leavingGroups', left)
      end)
    settling = settling + left
  end

  if not job[3] then
    for _, round_id in ipairs(redis.call('ZRANGE', tx.key:rounds(args.job), 0, -1)) do check_round(round_id) end
    check('job-settling', args.job, tonumber(job[2] or 0) == settling,
      string.format('settling %s, in the rounds %d', job[2] or '0', settling),
      function() redis.call('HSET', tx.key:job(args.job), 'settlingGroups', settling) end)
    local open = job[1] and redis.call('HGET', tx.key:round(args.job, job[1]), 'state')
    check('job-open-round', args.job, not job[1] or (open and open ~= 'closed' and open ~= 'cancelled'),
      string.format('%s: %s', job[1] or '', open or 'not there'))
  end
  return '{"findings":' .. Reply.list(tx.findings) .. ',"rounds":' .. Reply.list(listed) .. '}'
end

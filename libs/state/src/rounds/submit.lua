--[[ Adds new groups to a round, with all their requests pending. With `check`, only says whether the page may be added.
A page of which a part was stored is finished even if the round was completed meanwhile: its rest is cut like others.
ARGV[1] JSON:
  job, roundId    string
  trainerEpoch    string
  room            {freeBytes, quotaBytes, bytesPerToken} or absent, with check: what is left for payloads; live samples
                  and those of the page, taken for their maxTokens, must fit
  stamp           of the trainer, or absent
  check           boolean: all groups of the page (at most 128) are checked, nothing is stored
  groups          list of {groupId, digest, samples, maxTokens, promptRef, sampling (JSON as a string), domain,
                  promptHash, minSamples, timeoutMs: each or absent}; with `check`, groupId, digest, samples and
                  maxTokens suffice; without `check`, about 32 requests in all, as many as the round launches
Reply: fresh         check: list of groupId that are not there yet
       launchFactor  launched samples / samples of a group in this round
       added         number
       repeated      number: already there with the same digest
       roundGroups   number
       completed     true when the round was completed before
       stamp         string
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_NOT_OPEN, DUPLICATE_GROUP,
VALIDATION_FAILED,
        PAYLOAD_STORE_FULL, PAYLOAD_NOT_FOUND.
Events: round.submitted, round.progressed, round.completed, round.settled. ]]
return function(tx, args)
  local MOST_SAMPLES = 128
  local TOMBSTONE = 'tombstone' -- stands for the abortId: its answer said `not-found`
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or Trainer.error(tx, args.job,
    args.trainerEpoch)
  if refused then return refused end
  local round = Rounds.load(tx, args.job, args.roundId)
  if not round then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
  if round.state == 'closed' then return Reply.fail('ROUND_CLOSED', 'The round is closed', 'roundId') end

  local fresh, repeated = {}, 0
  for _, group in ipairs(args.groups) do
    local known = redis.call('HMGET', tx.key:group(args.job, group.groupId), 'digest', 'firstRoundId')
    if not known[1] then
      table.insert(fresh, group)
    elseif known[1] == group.digest and known[2] == args.roundId then
      repeated = repeated + 1
    else
      return Reply.fail('DUPLICATE_GROUP', 'Group ' .. group.groupId
        .. ' is known with other contents or of another round', 'groupId')
    end
  end
  -- What is checked now is still there when it is added: it waits for its removal anew.
  for _, group in ipairs(fresh) do
    if Reply.optional(group.promptRef) and not FreedPayloads.keep_freed(tx, group.promptRef) then
      return Reply.fail('PAYLOAD_NOT_FOUND', 'The prompt ' .. group.promptRef .. ' is being removed; store it again',
        'groups.promptRef')
    end
  end
  -- A prompt comes again in every epoch of a data set, each time as a group with an id of its own.
  if #fresh > 0 then
    local ids = {}
    for position, group in ipairs(fresh) do ids[position] = group.groupId end
    for position, step in ipairs(redis.call('ZMSCORE', tx.key:trainedGroups(args.job), unpack(ids))) do
      if step then
        return Reply.fail('DUPLICATE_GROUP', 'Group ' .. ids[position] .. ' was trained in step ' .. step
          .. '; in another epoch it is a group with another groupId', 'groupId')
      end
    end
  end
  -- 1.1 x 10 is a little more than 11 in binary.
  local function launched_of(group) return math.ceil(round.sampleOverProvision * group.samples - 1e-9) end
  for _, group in ipairs(args.check and fresh or {}) do
    if launched_of(group) > MOST_SAMPLES then
      return Reply.fail('VALIDATION_FAILED', Format.integer(launched_of(group))
        .. ' samples would be launched for group ' .. group.groupId
        .. '; at most ' .. MOST_SAMPLES, 'groups.samples')
    end
  end
  local completed = not Rounds.takes_results(round)
  if #fresh > 0 then
    if round.state == 'opening' or (completed and args.check and repeated == 0) then
      return Reply.fail('ROUND_NOT_OPEN', 'The round is ' .. round.state .. ' and accepts no more groups', 'roundId')
    end
    local places = math.max(0, round.newGroups - round.submitted) + (completed and 0 or Rounds.shortfall_of(round))
    if #fresh > places then
      return Reply.fail('VALIDATION_FAILED', 'The round accepts ' .. Format.integer(places) .. ' more groups', 'groups')
    end
  end

  local function answer(extra)
    local taken, submitted = unpack(redis.call('HMGET', tx.key:round(args.job, args.roundId), 'takenGroups',
      'submittedGroups'))
    return Generation.stamped(tx, cjson.encode({ added = #fresh, repeated = repeated, roundGroups = taken + submitted,
      completed = completed,
      launchFactor = round.sampleOverProvision })
      :sub(1, -2) .. extra .. '}')
  end
  -- Live work has its room reserved: what it makes must not be refused when it is made.
  local NOT_ENDED = { 'pending', 'claimed', 'running', 'cutting', 'unfinished' }
  local function room_error()
    local room, page = Reply.optional(args.room), 0
    if not room then return nil end
    for _, group in ipairs(fresh) do page = page + launched_of(group) * group.maxTokens * room.bytesPerToken end
    local live = 0
    for _, count in ipairs(redis.call('HMGET', tx.key:counts(args.job),
      unpack(NOT_ENDED))) do live = live + tonumber(count or 0) end
    local reserved = live * SampleBytes.of(tx, args.job, room.bytesPerToken)
    if page > room.quotaBytes then
      return Reply.fail('VALIDATION_FAILED',
        string.format('The samples of the page may take %.0f bytes of payloads, and the quota of the job is %.0f: '
        .. 'submit smaller pages, lower maxTokens, or raise PAYLOAD_QUOTA_BYTES', page, room.quotaBytes), 'groups')
    end
    if reserved + page > room.freeBytes then
      return Reply.fail('PAYLOAD_STORE_FULL',
        string.format('The samples of the page may take %.0f bytes of payloads; %.0f are free, of which '
        .. '%.0f are reserved for %.0f live samples. Close rounds first, drop long-tail groups, or raise '
        .. 'PAYLOAD_QUOTA_BYTES',
        page, room.freeBytes, reserved, live), 'groups', 1000)
    end
  end
  Trainer.seen(tx, args.job)
  if args.check then
    local no_room = #fresh > 0 and not completed and room_error()
    if no_room then return no_room end
    local ids = {}
    for position, group in ipairs(fresh) do ids[position] = group.groupId end
    return answer(',"fresh":' .. Reply.list(ids))
  end

  local recount = redis.call('HGET', tx.key:recount(args.job), 'id')
  for _, group in ipairs(fresh) do
    local arrival = redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1)
    local launched = launched_of(group)
    redis.call('HSET', tx.key:group(args.job, group.groupId), 'state', 'live', 'digest', group.digest, 'samples',
      group.samples,
      'launched', launched, 'finished', 0, 'live', launched, 'roundId', args.roundId, 'firstRoundId', args.roundId,
        'firstStep', round.step,
      'maxTokens', group.maxTokens, 'promptRef', group.promptRef, 'sampling', group.sampling,
      'arrival', arrival)
    FreedPayloads.hold_prompt(tx, args.job, group.promptRef)
    if round.concurrency > 0 then redis.call('HSET', tx.key:group(args.job, group.groupId), 'gated', 1) end
    Places.count_live(tx, round, { domain = Reply.optional(group.domain) }, 1)
    if Reply.optional(group.domain) then redis.call('HSET', tx.key:group(args.job, group.groupId), 'domain',
      group.domain) end
    for _, name in ipairs({ 'promptHash', 'minSamples', 'timeoutMs' }) do
      if Reply.optional(group[name]) then redis.call('HSET', tx.key:group(args.job, group.groupId), name,
        group[name]) end
    end
    local ids = {}
    for index = 0, launched - 1 do
      ids[index + 1] = Requests.id_of(args.job, group.groupId, index)
      redis.call('HSET', tx.key:request(ids[index + 1]), 'state', 'pending', 'attempt', 0, 'failures', 0)
      if recount then redis.call('HSET', tx.key:request(ids[index + 1]), 'recount', recount) end
    end
    local ahead, probes = Dispatch.ahead(tx, round, group, launched)
    local place = Requests.enqueue(tx, args.job, ids, false, ahead)
    if probes then redis.call('HSET', tx.key:group(args.job, group.groupId), 'probing', 1, 'placeInQueue',
      Format.integer(place)) end
    Counts.add_requests(tx, args.job, 'submitted', launched)
    Counts.add_requests(tx, args.job, 'pending', launched)
    if recount then redis.call('HINCRBY', tx.key:recount(args.job), 'pending', launched) end
    redis.call('HINCRBY', tx.key:job(args.job), 'submittedTokens', Format.integer(launched * group.maxTokens))
    redis.call('ZADD', tx.key:roundGroups(args.job, args.roundId), arrival, group.groupId)
  end
  if #fresh > 0 then
    redis.call('HINCRBY', tx.key:job(args.job), 'submittedGroups', #fresh)
    round.submitted = Rounds.bump(tx, round, 'submittedGroups', #fresh)
    round.live = Rounds.bump(tx, round, 'liveGroups', #fresh)
    Events.add(tx, 'round.submitted', { job = args.job, roundId = args.roundId, groups = #fresh })
    if completed then
      if round.cancelMode ~= 'drop' then Counts.add_settling(tx, args.job, #fresh) end
      redis.call('HSET', tx.key:round(args.job, args.roundId), 'settled', 0)
      redis.call('SADD', tx.key.sweeps, Rounds.sweep_name(round))
    else
      Rounds.review_round(tx, round)
    end
  end

  -- An abort that came before its request wins, in the scope it has named or in that of the round.
  local SCOPES = { 'round', 'group', 'sample' }
  local function end_aborted(group)
    local names = { 'G|' .. args.job .. '/' .. group.groupId }
    for index = 0, group.launched - 1 do
      local id = Requests.id_of(args.job, group.groupId, index)
      for _, name in ipairs({ id, 'group|' .. id, 'sample|' .. id }) do table.insert(names, name) end
    end
    for position, ends_at in ipairs(redis.call('ZMSCORE', tx.key.abortTombstones, unpack(names))) do
      local is_there = ends_at and tonumber(ends_at) > tx.now and Aborts.may_be_aborted(group)
      if is_there and position == 1 then
        Aborts.abort_group(tx, round, group, TOMBSTONE, {})
      elseif is_there then
        local id, scope = names[position - (position - 2) % 3], SCOPES[(position - 2) % 3 + 1]
        Aborts.abort_request(tx, round, group, Requests.load(tx, id), TOMBSTONE, scope ~= 'round' and scope or nil, {})
      end
    end
  end
  if #fresh > 0 and redis.call('EXISTS', tx.key.abortTombstones) == 1 then
    for _, added in ipairs(fresh) do end_aborted(Rounds.load_group(tx, args.job, added.groupId)) end
  end
  return answer('')
end

--[[ Takes one page of groups of the long-tail queue into a round that is opening; the last page opens it. Finished
groups come first and are accepted; then groups that a bound pins to this step, each with a reserved place; then other
groups, by the place of their first cut. Finished samples stay. Other samples are pending again, with their tokens,
unless the policy of the round discards the tokens, or the tokens are too old or too much of the batch. In a round
without surplus samples a group is trimmed to the samples it needs. A page ends with the group that brings it to 32
requests.
ARGV[1] JSON: {job, roundId, stamp}: the stamp of the reply that opened the round, or absent
Reply: TakeAnswer; takenGroups so far
Errors: GENERATION_CHANGED, ROUND_NOT_FOUND. Events: round.progressed, round.completed, round.settled, request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 32
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local round = Round.load(tx, args.job, args.roundId)
  if not round then return Reply.fail('ROUND_NOT_FOUND', 'There is no round ' .. args.roundId, 'roundId') end
  Round.read_rest(tx, round)
  local take, reserves_taken = round.takeGroups, round.reservesTaken
  -- A round with another order than arrival begins with requests that were started before.
  local has_order = round.dispatchOrder ~= 'arrival'

  -- The next group, and whether it cannot wait.
  local function next_group()
    local head = redis.call('ZRANGE', tx.key:longtail(args.job), 0, 0, 'WITHSCORES')
    if not head[1] then return nil end
    if tonumber(head[2]) < 0 then return head[1], true end
    local due = Format.integer((round.step + 1) * LongtailQueue.STEP_OF_PIN)
    local pinned = redis.call('ZRANGEBYSCORE', tx.key:pins(args.job), '-inf', '(' .. due, 'LIMIT', 0, 1)[1]
    return pinned or head[1], pinned ~= nil or reserves_taken
  end

  -- Oldest weight version of the tokens of a request, or nil. The tokens of a sample that was stopped for good are left
  -- alone: they count as waste already, and stay for the answer of its abort.
  local function oldest_version(request)
    if request.state == 'dropped' or request.segments == '[]' then return nil end
    return cjson.decode(request.segments)[1].weightVersion
  end

  -- Discards tokens that the round may not use.
  local function discard_old(group, requests)
    local function waste(request, reason)
      KeptTokens.waste(tx, request, group, round, reason)
      if request.state == 'finished' then Requests.move(tx, request, group, 'unfinished') end
    end
    local span = Round.rules(tx, round).maxVersionSpan
    local limit = span >= 0 and round.weightVersion - span or -1
    local oldest
    for _, request in ipairs(requests) do
      local version = oldest_version(request)
      if version and round.discards then
        waste(request, request.state == 'finished' and 'unaccepted' or 'cut')
      elseif version and version < limit then
        waste(request, 'version-span')
      elseif version then
        oldest = math.min(oldest or version, version)
      end
    end
    if oldest and oldest < round.weightVersion and round.keepTokens then
      local tokens = Group.read_made(tx, group).tokens
      if tokens <= round.keepTokens then
        Round.add(tx, round, 'keepTokens', 0 - tokens)
      else
        for _, request in ipairs(requests) do
          if oldest_version(request) then waste(request, 'off-policy') end
        end
        oldest = nil
      end
    end
    Group.set(tx, group, { oldestVersion = oldest or false })
  end

  local function take_group(group_id, is_urgent)
    if Recovery.lose_queued(tx, args.job, group_id) then return 1 end
    LongtailQueue.remove(tx, args.job, group_id)
    local group = Group.load(tx, args.job, group_id)
    Round.add(tx, round, 'takenGroups', 1)
    Round.add(tx, round, 'liveGroups', 1)
    Group.set(tx, group, { state = 'live', roundId = args.roundId, taken = true, gated = round.concurrency > 0 or nil,
      pinned = is_urgent or nil })
    redis.call('ZADD', tx.key:roundGroups(args.job, args.roundId),
      redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1), group_id)
    if is_urgent then Places.reserve(tx, round, group, reserves_taken) else Places.count_live(tx, round, group, 1) end
    -- An abort flag may have come since the groups were promised.
    if Aborts.apply(tx, round, group, {}) then return group.launched end
    local requests = LostRecords.load_requests(tx, group)
    discard_old(group, requests)
    local room = round.sampleOverProvision > 1 and group.launched or group.samples - group.finished
    for _, request in ipairs(requests) do
      if request.state == 'unfinished' and room > 0 then
        room = room - 1
        Requests.move(tx, request, group, 'pending', nil, has_order)
      elseif request.state == 'unfinished' then
        KeptTokens.waste(tx, request, group, round, 'surplus')
        Requests.move(tx, request, group, 'dropped')
      end
    end
    if Group.is_whole(group) then Longtail.place_whole(tx, round, group, {}) end
    return group.launched
  end

  local touched, is_done = 0, false
  while round.state == 'opening' and touched < PAGE and round.takenGroups < take do
    local group_id, is_urgent = next_group()
    -- Only opening rounds take from the queue, so it has the promised groups, unless some were aborted. A group that
    -- must be taken and finds no place waits for the next step.
    is_done = not group_id or (is_urgent and Places.open(round) <= 0)
    if is_done then break end
    touched = touched + take_group(group_id, is_urgent)
  end
  if round.state == 'opening' and (round.takenGroups >= take or is_done) then
    -- Releases places that were kept for groups that did not come.
    if round.hasQuotas and reserves_taken then
      Places.add_spare(tx, round, math.min(round.neededGroups, take) - round.takenGroups)
    end
    Round.set(tx, round, { state = 'open' })
    redis.call('SREM', tx.key.sweeps, Round.format_name(round))
    Rounds.review_round(tx, round)
  end
  return Reply.object({ state = round.state, takenGroups = round.takenGroups })
end

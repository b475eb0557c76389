--[[ A page of the accepted groups of a round, in the order of acceptance. The page ends with 128 samples or `maxBytes`
of samples, also in the middle of a group, where the next page continues. The cursor proves which groups were read
before it; when Redis has not the same groups in the same order any more, reading starts again.
ARGV[1] JSON: {job, roundId, cursor, limit, maxBytes, trainerEpoch, stamp}: ResultsArgs
Reply: ResultsPage
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED, VALIDATION_FAILED.
Events: request.lost.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128
  local round, refused = Trainer.round(tx, args)
  if not round then return refused end
  if args.trainerEpoch then Trainer.seen(tx, args.job) end
  if round.state == 'closed' then
    return Reply.fail('ROUND_CLOSED', 'The round is closed; its results are no longer available', 'roundId')
  end
  if round.state == 'cancelled' then
    return Reply.fail('ROUND_CANCELLED', 'The round was cancelled; it has no results', 'roundId')
  end
  local place = ResultsDigest.parse_cursor(round, args.cursor)
  if not place then return Reply.fail('VALIDATION_FAILED', 'cursor: not a cursor of round.results', 'cursor') end
  local function read_anew()
    return Generation.changed(tx, 'cursor',
      'What was read up to this cursor is not what Redis has: read the round from its '
      .. 'beginning, keep the groups whose digest is the same, and drop the others')
  end
  if place.generation and place.generation ~= Generation.current(tx) then return read_anew() end
  if ResultsDigest.digest_at(tx, round, place.position) ~= place.all then return read_anew() end

  local bytes = 0
  -- Finished samples of a group behind the first `known` samples: at most `room`, and none after `maxBytes` were
  -- reached. Returns the samples, the digest of the known samples, the digest of all samples so far, and true when
  -- there are more; nil when a sample is not there.
  local function samples_of(group_id, launched, needed, known, room)
    local samples, seen, own, known_own, is_full = {}, 0, '', '', false
    for index = 0, launched - 1 do
      local id = Request.format_id(args.job, group_id, index)
      local request = Request.load(tx, id)
      if request and request.state == 'finished' then
        local segments = Request.read_end(tx, request).segments
        seen = seen + 1
        is_full = seen > known and (#samples == room or bytes >= args.maxBytes)
        if is_full then break end
        own = ResultsDigest.with_sample(own, id, request.finishReason, segments)
        if seen == known then known_own = own end
        if seen > known then
          local plain = cjson.encode({ requestId = id, sampleIndex = index, finishReason = request.finishReason,
            engineFinishReason = request.engineFinishReason, tokenCount = request.tokens })
          local sample = InlineSegments.append(plain, segments)
          bytes = bytes + #sample
          table.insert(samples, sample)
        end
      end
    end
    if not is_full and seen < needed then return nil end
    return samples, known_own, own, known + #samples < needed
  end

  -- Ends an accepted group that is gone, or that lacks a sample.
  local function lose(group_id)
    local group = Group.load(tx, args.job, group_id)
    if group then
      LostRecords.load_requests(tx, group)
      GroupEnds.lose_group(tx, round, group)
    else
      Rounds.leave_accepted(tx, round, group_id)
      Recovery.lose_missing_group(tx, args.job, group_id)
    end
  end

  local groups, touched = {}, 0
  local page = redis.call('LRANGE', tx.key:roundAccepted(args.job, args.roundId), place.position,
    place.position + args.limit - 1)
  for _, group_id in ipairs(page) do
    local group = Group.load(tx, args.job, group_id)
    local samples, known_own, own, more
    if group then
      samples, known_own, own, more =
        samples_of(group_id, group.launched, group.samples, place.samples, PAGE - touched)
    end
    if not samples then
      lose(group_id)
      if place.samples > 0 then return read_anew() end
      touched = touched + PAGE / 16
    else
      if place.samples > 0 and known_own ~= place.own then return read_anew() end
      table.insert(groups, Reply.object({ groupId = group_id, promptRef = group.promptRef,
        cuts = Group.read_past(tx, group).cuts, firstStep = group.firstStep, domain = group.domain, more = more or nil,
        excluded = Rewards.is_excluded(tx, round, group_id) or nil,
        digest = not more and own or nil }, { samples = Reply.joined(samples) }))
      touched = touched + #samples
      if more then
        place.samples, place.own = place.samples + #samples, own
        break
      end
      place.all = ResultsDigest.note_read(tx, round, place.position, place.all, group_id, own)
      place.position, place.samples, place.own = place.position + 1, 0, ''
      if touched >= PAGE or bytes >= args.maxBytes then break end
    end
  end
  return Generation.reply(tx, { state = round.state, cursor = ResultsDigest.cursor_of(tx, place),
    complete = not Round.takes_results(round) and place.position >= round.acceptedGroups },
    { groups = Reply.joined(groups) })
end

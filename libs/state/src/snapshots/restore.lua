--[[ Does one page of a restore of a job from a snapshot. The first page fences the earlier trainer. The next pages
empty the long-tail queue, forget aborts that wait for groups of the job and groups that were dropped since the
snapshot, and restore the saved groups. The last page sets counters and counts. Groups submitted after the snapshot are
forgotten: the trainer has to submit them again.
A page ends with the group that brings it to 32 requests.
ARGV[1] JSON: {job, tag, trainerEpoch, stamp, newEpoch}: RestoreJobRequest. The first page starts the epoch newEpoch;
  without a trainerEpoch each call starts its newEpoch, and the earlier trainer is fenced as by a takeover
Reply: RestoreSnapshotPage; stepsTrained, submittedGroups and groups as in the snapshot. `restoring`: call again.
  `restored`: a repeat gets the same reply until the job has changed
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, SNAPSHOT_NOT_FOUND, ROUND_CONFLICT, ROUND_SETTLING.
Events: job.restored. ]]
return function(tx, args)
  local PAGE, TOMBSTONES_READ = 32, 256
  local job, longtail = args.job, tx.key:longtail(args.job)
  local refused = Generation.stamp_error(tx, args.stamp)
  if refused then return refused end
  local known = Job.load(tx, job)
  if not known.trainerEpoch then return Trainer.no_job(job) end
  local epoch, given, goes_on = known.trainerEpoch, args.trainerEpoch, known.restoring ~= nil
  local number = redis.call('ZSCORE', tx.key:snapshots(job), args.tag)
  local header = number and Hashes.all(tx.key:snapshot(job, number))
  -- A repeat of the call: its first page has started a new epoch, and the job has not changed since.
  local continues = number and known.restoring == number
  local is_repeat = given and number and known.restoredNumber == number and known.restoredEpoch == epoch
    and given == known.restoredFrom and (continues or header.mark == Snapshots.state_mark(tx, job))
  if given and given ~= epoch and not is_repeat then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
  if not number then
    local tags = table.concat(redis.call('ZRANGE', tx.key:snapshots(job), 0, -1), ', ')
    local there = tags == '' and 'there is none' or 'there are ' .. tags .. ' (`keep` of job.snapshot is their number)'
    return Reply.fail('SNAPSHOT_NOT_FOUND', 'The job has no snapshot ' .. args.tag .. '; ' .. there, 'tag')
  end
  local touched = 0

  local function answer(state, retired)
    local steps, submitted = string.match(header.mark, '^(%d+)/(%d+)/')
    return Generation.reply(tx, { tag = args.tag, state = state, trainerEpoch = epoch, stepsTrained = tonumber(steps),
      submittedGroups = tonumber(submitted), groups = tonumber(header.groups), retired = retired })
  end

  local phase, cursor = known.restorePhase, known.restoreCursor
  if not continues then
    if is_repeat and not goes_on then return answer('restored', false) end
    local unrest = Snapshots.unrest_of(tx, job)
    if unrest then return unrest end
    phase, cursor = 'empty', '0'
  end
  if not continues or not given then
    epoch = args.newEpoch
    Job.set(tx, job, { trainerEpoch = epoch, restoring = number, restoredFrom = given or '', restoredEpoch = epoch,
      restoredNumber = number })
  end
  Trainer.seen(tx, job)
  -- A recount would miss the changes that the pages make; another recount comes after.
  redis.call('UNLINK', tx.key:recount(job))

  local function count(request, by)
    Counts.add_requests(tx, job, 'submitted', by)
    Counts.add_requests(tx, job, request.state, by)
  end

  -- Deletes a group with its requests. Requests that are gone are not counted: the last page sets all counts.
  local function delete_group(group_id)
    local group = Group.load(tx, job, group_id)
    local launched = group and group.launched or GroupDeletion.MAX_SAMPLES
    local prompt_ref = group and group.promptRef
    GroupDeletion.delete(tx, job, group_id, launched, prompt_ref, function(request) count(request, -1) end)
    touched = touched + launched
  end

  local function forget_dropped(group_id)
    redis.call('ZREM', tx.key.droppedGroups, job .. '/' .. group_id)
    Job.add(tx, job, 'droppedGroups', -1)
    delete_group(group_id)
  end

  -- Restores a saved group, with a new arrival number, so that no earlier abort covers the group.
  local function put_back(group_id, saved)
    if Group.exists(tx, job, group_id) then forget_dropped(group_id) end
    saved.group.arrival = redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1)
    Group.restore(tx, job, group_id, saved.group)
    FreedPayloads.hold_prompt(tx, job, saved.group.promptRef)
    for index, request in ipairs(saved.requests) do
      Request.restore(tx, Request.format_id(job, group_id, index - 1), request)
      count(request, 1)
    end
    redis.call('ZADD', longtail, saved.place, group_id)
    if saved.group.pin then redis.call('ZADD', tx.key:pins(job), saved.group.pin, group_id) end
    touched = touched + #saved.requests
  end

  -- Removes tombstones of the job, by which aborts wait for unknown groups and requests: these may be submitted again
  -- now. True when all tombstones were read.
  local function unbury()
    local page = redis.call('ZSCAN', tx.key.abortTombstones, cursor, 'COUNT', TOMBSTONES_READ)
    for position = 1, #page[2], 2 do
      local name = page[2][position]
      local id = string.match(name, '^%a+|(.*)$') or name
      if string.sub(id, 1, #job + 1) == job .. '/' then redis.call('ZREM', tx.key.abortTombstones, name) end
    end
    touched, cursor = PAGE, page[1]
    return cursor == '0'
  end

  -- Each phase does a part of the page and returns the next phase when it is done. A replica of the previous release
  -- may continue a restore that this release has started, so the previous release must know the phases.
  local phases = {}

  function phases.empty()
    while touched < PAGE do
      local group_id = redis.call('ZPOPMIN', longtail)[1]
      if not group_id then
        redis.call('UNLINK', tx.key:pins(job))
        return unbury() and 'forget' or nil
      end
      delete_group(group_id)
    end
  end

  -- Forgets dropped groups, which are kept for a while, if they were submitted after the snapshot.
  function phases.forget()
    local page = redis.call('ZSCAN', tx.key.droppedGroups, cursor, 'COUNT', PAGE, 'MATCH', job .. '/*')
    for position = 1, #page[2], 2 do
      -- The next call reads this page once more, without the groups that this call has deleted.
      if touched >= PAGE then return end
      local _, group_id = Job.parse_name(page[2][position])
      local group = Group.load(tx, job, group_id)
      if group and group.arrival > tonumber(header.arrival) then forget_dropped(group_id) end
    end
    touched, cursor = PAGE, page[1]
    return cursor == '0' and 'fill' or nil
  end

  function phases.fill()
    local groups_per_page = math.max(1, math.floor(PAGE * header.groups / math.max(1, header.requests)))
    local page = redis.call('HSCAN', Snapshots.groups(tx, job, number), cursor, 'COUNT', groups_per_page)
    for position = 1, #page[2], 2 do
      if not redis.call('ZSCORE', longtail, page[2][position]) then
        -- The next call reads this page once more, and passes over the groups that are restored already.
        if touched >= PAGE then return end
        put_back(page[2][position], cjson.decode(page[2][position + 1]))
      end
    end
    cursor = page[1]
    return cursor == '0' and 'finish' or nil
  end

  local function finish()
    local step, last = tonumber(header.step), Job.load(tx, job).stepsTrained + 1
    for later = math.max(step + 1, last - Lengths.HISTORY_STEPS), last do
      redis.call('UNLINK', tx.key:lengths(job, Format.integer(later)))
    end
    for copy, key in pairs(Snapshots.copies(tx, job, number, step)) do
      if redis.call('COPY', copy, key, 'REPLACE') == 0 then redis.call('UNLINK', key) end
    end
    Job.restore(tx, job, cjson.decode(header.job))
    redis.call('ZREMRANGEBYSCORE', tx.key:trainedGroups(job), '(' .. header.step, '+inf')
    for _, round_id in ipairs(redis.call('ZDIFF', 2, tx.key:rounds(job), Snapshots.rounds(tx, job, number))) do
      Round.delete(tx, job, round_id)
      redis.call('UNLINK', tx.key:roundLost(job, round_id))
      redis.call('ZREM', tx.key:rounds(job), round_id)
    end
    redis.call('UNLINK', tx.key:jobLost(job))
    Events.add(tx, 'job.restored', { job = job, tag = args.tag, trainerEpoch = epoch })
    -- Removes snapshots of later steps, which the job has to train again.
    return Snapshots.remove(tx, job, redis.call('ZRANGEBYSCORE', tx.key:snapshots(job), '(' .. number, '+inf'))
  end

  while touched < PAGE and phase ~= 'finish' do
    local next_phase = phases[phase]()
    if next_phase then phase, cursor = next_phase, '0' end
  end
  if phase == 'finish' then return answer('restored', finish()) end
  Job.set(tx, job, { restorePhase = phase, restoreCursor = cursor })
  return answer('restoring', false)
end

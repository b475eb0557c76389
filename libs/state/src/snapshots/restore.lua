--[[ Does one page of a restore: the job goes back to a snapshot. The first page fences the trainer before; then the
long-tail queue is emptied, what was dropped since is forgotten, the saved groups are put back, and the last page sets
counters and counts. Groups submitted after the snapshot are forgotten: they are to be submitted again.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON:
  job, tag       string
  trainerEpoch   string, or absent: whoever it was is fenced, as by a takeover, by each such call
  newEpoch       string: the epoch that begins with the first page
  stamp          of the trainer, or absent
Reply: tag, trainerEpoch, stepsTrained, submittedGroups, groups   the last three of the snapshot
       state     'restoring' (call again) | 'restored'; a repeat gets the same until something else happens to the job
       retired   boolean: a snapshot that was made after this one is to be deleted
       stamp     string
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, SNAPSHOT_NOT_FOUND, ROUND_CONFLICT, ROUND_SETTLING. Events:
job.restored. ]]
return function(tx, args)
  local PAGE = 32
  local job, hash = args.job, tx.key:job(args.job)
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp))
  if refused then return refused end
  local field = redis.call('HMGET', hash, 'trainerEpoch', 'restoring', 'restoredFrom', 'restoredEpoch', 'restorePhase',
    'restoreCursor',
    'restoredNumber')
  if not field[1] then return Reply.fail('JOB_NOT_FOUND', 'There is no job ' .. job, 'job') end
  local epoch, given = field[1], Reply.optional(args.trainerEpoch)
  local number = redis.call('ZSCORE', tx.key:snapshots(job), args.tag)
  local header = number and tx.key:snapshot(job, number)
  local mark = number and redis.call('HGET', header, 'mark')
  -- The same call again: its first page has made a new epoch, and nothing has happened since.
  local is_repeat = given and number and field[7] == number and field[4] == epoch and given == field[3]
    and (field[2] == number or mark == Snapshots.state_mark(tx, job))
  if given and given ~= epoch and not is_repeat then
    return Reply.fail('FENCED', 'Another trainer has taken the job over', 'trainerEpoch')
  end
  if not number then return Reply.fail('SNAPSHOT_NOT_FOUND', 'The job has no snapshot ' .. args.tag, 'tag') end
  local saved_groups = tx.key:snapshotPart(job, number, Snapshots.SAVED_GROUPS)
  local retired, touched = false, 0

  local function answer(state)
    local steps, submitted = string.match(mark, '^(%d+)/(%d+)/')
    return Generation.stamped(tx, cjson.encode({ tag = args.tag, state = state, trainerEpoch = epoch,
      stepsTrained = tonumber(steps),
      submittedGroups = tonumber(submitted), groups = tonumber(redis.call('HGET', header, 'groups')),
        retired = retired }))
  end

  local phase, cursor = field[5], field[6]
  if field[2] ~= number then
    if is_repeat and not field[2] then return answer('restored') end
    local unrest = Snapshots.unrest_of(tx, job)
    if unrest then return unrest end
    phase, cursor = 'empty', '0'
  end
  if field[2] ~= number or not given then
    epoch = args.newEpoch
    redis.call('HSET', hash, 'trainerEpoch', epoch, 'restoring', number, 'restoredFrom', given or '', 'restoredEpoch',
      epoch,
      'restoredNumber', number)
  end
  Trainer.seen(tx, job)
  -- It would miss what is done here page by page; another one comes after.
  redis.call('UNLINK', tx.key:recount(job))

  local function count(states, samples, sign)
    Counts.add_requests(tx, job, 'submitted', sign * samples)
    for state, requests in pairs(states) do Counts.add_requests(tx, job, state, sign * requests) end
  end

  -- Deletes a group with its requests, and takes them off the counts.
  local function delete_group(group_id)
    local group = redis.call('HMGET', tx.key:group(job, group_id), 'launched', 'promptRef')
    local states, refs, samples, launched = {}, {}, 0, tonumber(group[1] or GroupDeletion.MOST_SAMPLES)
    for index = 0, launched - 1 do
      local request = Requests.load(tx, Requests.id_of(job, group_id, index))
      -- One that is gone is not counted: the last page sets all counts.
      if request then
        samples, states[request.state] = samples + 1, (states[request.state] or 0) + 1
        for _, segment in ipairs(cjson.decode(request.segments)) do table.insert(refs, segment.ref) end
        redis.call('UNLINK', tx.key:request(request.id))
      end
    end
    redis.call('UNLINK', tx.key:group(job, group_id))
    if samples > 0 then count(states, samples, -1) end
    touched = touched + launched
    KeptRefs.free_payloads_of(tx, job, group_id, group[2], refs)
  end

  local function forget_dropped(group_id)
    redis.call('ZREM', tx.key.droppedGroups, job .. '/' .. group_id)
    redis.call('HINCRBY', hash, 'droppedGroups', -1)
    delete_group(group_id)
  end

  local phases = {}

  function phases.empty()
    while touched < PAGE do
      local group_id = redis.call('ZPOPMIN', tx.key:longtail(job))[1]
      if not group_id then
        redis.call('UNLINK', tx.key:pins(job))
        return 'forget'
      end
      delete_group(group_id)
    end
  end

  -- Dropped groups are there for a while after; those submitted since the snapshot are unknown again.
  function phases.forget()
    local arrival = tonumber(redis.call('HGET', header, 'arrival'))
    local page = redis.call('ZSCAN', tx.key.droppedGroups, cursor, 'COUNT', PAGE, 'MATCH', job .. '/*')
    for position = 1, #page[2], 2 do
      -- The same page once more, without those that are gone.
      if touched >= PAGE then return end
      local group_id = string.match(page[2][position], '^[^/]+/(.+)$')
      if tonumber(redis.call('HGET', tx.key:group(job, group_id), 'arrival') or 0) > arrival then
        forget_dropped(group_id)
      end
    end
    touched, cursor = PAGE, page[1]
    return cursor == '0' and 'fill' or nil
  end

  function phases.fill()
    local size = redis.call('HMGET', header, 'groups', 'requests')
    local groups_per_page = math.max(1, math.floor(PAGE * size[1] / math.max(1, size[2])))
    local page = redis.call('HSCAN', saved_groups, cursor, 'COUNT', groups_per_page)
    for position = 1, #page[2], 2 do
      local group_id = page[2][position]
      if not redis.call('ZSCORE', tx.key:longtail(job), group_id) then
        -- The same page once more, without those that are there.
        if touched >= PAGE then return end
        local saved, states = cjson.decode(page[2][position + 1]), {}
        if redis.call('EXISTS', tx.key:group(job, group_id)) == 1 then forget_dropped(group_id) end
        redis.call('HSET', tx.key:group(job, group_id), unpack(saved.group))
        FreedPayloads.hold_prompt(tx, job, KeptRefs.value_of(saved.group, 'promptRef'))
        -- It comes after every abort there was.
        redis.call('HSET', tx.key:group(job, group_id), 'arrival', redis.call('HINCRBY', tx.key.meta, 'arrivalSequence',
          1))
        for index, request in ipairs(saved.requests) do
          local id = Requests.id_of(job, group_id, index - 1)
          redis.call('HSET', tx.key:request(id), unpack(request))
          local state = KeptRefs.value_of(request, 'state')
          states[state] = (states[state] or 0) + 1
        end
        redis.call('ZADD', tx.key:longtail(job), saved.place, group_id)
        local pin = KeptRefs.value_of(saved.group, 'pin')
        if pin then redis.call('ZADD', tx.key:pins(job), pin, group_id) end
        count(states, #saved.requests, 1)
        touched = touched + #saved.requests
      end
    end
    cursor = page[1]
    return cursor == '0' and 'finish' or nil
  end

  local function finish()
    local kept = redis.call('HMGET', hash, unpack(Snapshots.FENCES))
    local saved_step, last = tonumber(redis.call('HGET', header, 'step')), tonumber(redis.call('HGET', hash,
      'stepsTrained') or 0) + 1
    for step = math.max(saved_step + 1, last - Snapshots.SAVED_LENGTHS), last do redis.call('UNLINK',
      tx.key:lengths(job, Format.integer(step))) end
    for back = -1, Snapshots.SAVED_LENGTHS - 1 do
      redis.call('COPY', Snapshots.lengths_part(tx, job, number, back), tx.key:lengths(job,
        Format.integer(saved_step - back)), 'REPLACE')
    end
    redis.call('UNLINK', hash)
    redis.call('HSET', hash, unpack(cjson.decode(redis.call('HGET', header, 'job'))))
    for position, name in ipairs(Snapshots.FENCES) do
      if kept[position] then redis.call('HSET', hash, name, kept[position]) else redis.call('HDEL', hash, name) end
    end
    redis.call('HDEL', hash, 'restoring', 'restorePhase', 'restoreCursor')
    for part, name in pairs(Snapshots.COPIED) do
      local copied = tx.key[name](tx.key, job)
      if redis.call('COPY', tx.key:snapshotPart(job, number, part), copied, 'REPLACE') == 0 then
        redis.call('UNLINK', copied)
      end
    end
    redis.call('ZREMRANGEBYSCORE', tx.key:trainedGroups(job), '(' .. redis.call('HGET', header, 'step'), '+inf')
    for _, round_id in ipairs(redis.call('ZDIFF', 2, tx.key:rounds(job), tx.key:snapshotPart(job, number,
      Snapshots.SAVED_ROUNDS))) do
      redis.call('UNLINK', tx.key:round(job, round_id), tx.key:roundLedger(job, round_id))
      redis.call('ZREM', tx.key:rounds(job), round_id)
    end
    -- Snapshots of a time that has not been.
    for _, tag in ipairs(redis.call('ZRANGEBYSCORE', tx.key:snapshots(job), '(' .. number, '+inf')) do
      Snapshots.retire(tx, job, redis.call('ZSCORE', tx.key:snapshots(job), tag))
      redis.call('ZREM', tx.key:snapshots(job), tag)
      retired = true
    end
    Events.add(tx, 'job.restored', { job = job, tag = args.tag, trainerEpoch = epoch })
  end

  while touched < PAGE and phase ~= 'finish' do
    local next_phase = phases[phase]()
    if next_phase then phase, cursor = next_phase, '0' end
  end
  if phase == 'finish' then
    finish()
    return answer('restored')
  end
  redis.call('HSET', hash, 'restorePhase', phase, 'restoreCursor', cursor)
  return answer('restoring')
end

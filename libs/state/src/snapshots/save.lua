--[[ Saves one page of the state of a job between two rounds: its long-tail queue with requests and segments (payloads
by reference, which the snapshot owns from then on), its counters and counts. The snapshot is complete with its last
page; then only the last `keep` snapshots are kept, by default two. When a group was dropped between two pages, the save
starts again.
A page ends with the group that brings it to 32 requests.
ARGV[1] JSON: {job, trainerEpoch, stamp, tag, keep}   stamp of the trainer, and number of snapshots; or absent
Reply: SaveSnapshotPage; a repeat for a complete snapshot gets the same reply
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_SETTLING, RESTORE_UNFINISHED,
  SNAPSHOT_EXISTS. Events: job.snapshotted. ]]
return function(tx, args)
  local PAGE, KEPT = 32, args.keep or 2
  local job = args.job
  local refused = Trainer.refusal(tx, args) or Trainer.restore_error(tx, job)
  if refused then return refused end
  Trainer.seen(tx, job)

  local mark = Snapshots.state_mark(tx, job)
  local function is_of_state(number) return redis.call('HGET', tx.key:snapshot(job, number), 'mark') == mark end
  local function answer(number, state, retired)
    local reply = Snapshots.header(tx, job, number)
    reply.state, reply.retired, reply.savedAtMs = state, retired or false, nil
    return Generation.reply(tx, reply)
  end
  local known = redis.call('ZSCORE', tx.key:snapshots(job), args.tag)
  if known and is_of_state(known) then return answer(known, 'complete') end
  if known then return Reply.fail('SNAPSHOT_EXISTS', 'The tag names a snapshot of another state', 'tag') end
  local unrest = Snapshots.unrest_of(tx, job)
  if unrest then return unrest end

  local number, retired = Job.load(tx, job).saving, false
  if not number or Snapshots.header(tx, job, number).tag ~= args.tag or not is_of_state(number) then
    if number then
      Snapshots.retire(tx, job, number)
      retired = true
    end
    number = Format.integer(redis.call('HINCRBY', tx.key.meta, 'snapshotSequence', 1))
    Job.set(tx, job, { saving = number })
    local step = Job.load(tx, job).stepsTrained
    Hashes.set(tx.key:snapshot(job, number), { tag = args.tag, step = step, mark = mark,
      job = cjson.encode(Job.copy(tx, job)),
      groups = 0, requests = 0, cursor = '-inf', arrival = redis.call('HGET', tx.key.meta, 'arrivalSequence') or 0 })
    for copy, key in pairs(Snapshots.copies(tx, job, number, step)) do redis.call('COPY', key, copy, 'REPLACE') end
    redis.call('COPY', tx.key:rounds(job), Snapshots.rounds(tx, job, number), 'REPLACE')
  end

  local header = tx.key:snapshot(job, number)
  local cursor = redis.call('HGET', header, 'cursor')
  local page = redis.call('ZRANGEBYSCORE', tx.key:longtail(job), cursor == '-inf' and cursor or '(' .. cursor, '+inf',
    'WITHSCORES', 'LIMIT', 0, PAGE)
  local groups, requests = 0, 0
  for position = 1, #page, 2 do
    if requests >= PAGE then break end
    local group_id = page[position]
    -- A group was lost, so the save starts again: the state of the job has changed.
    if Recovery.lose_queued(tx, job, group_id) then return answer(number, 'saving', retired) end
    local saved = { place = page[position + 1], group = Group.copy(tx, job, group_id), requests = {} }
    for index = 0, tonumber(saved.group.launched) - 1 do
      saved.requests[index + 1] = Request.copy(tx, Request.format_id(job, group_id, index))
    end
    redis.call('HSET', Snapshots.groups(tx, job, number), group_id, cjson.encode(saved))
    FreedPayloads.hold_prompt(tx, job, saved.group.promptRef)
    cursor, groups, requests = page[position + 1], groups + 1, requests + #saved.requests
  end
  redis.call('HSET', header, 'cursor', cursor)
  redis.call('HINCRBY', header, 'groups', groups)
  redis.call('HINCRBY', header, 'requests', requests)
  if 2 * groups < #page or #page == 2 * PAGE then return answer(number, 'saving', retired) end

  redis.call('HSET', header, 'savedAtMs', Format.integer(tx.now))
  redis.call('HDEL', header, 'cursor')
  Job.set(tx, job, { saving = false })
  redis.call('ZADD', tx.key:snapshots(job), number, args.tag)
  retired = Snapshots.remove(tx, job, redis.call('ZRANGE', tx.key:snapshots(job), 0, -1 - KEPT)) or retired
  local whole = Snapshots.header(tx, job, number)
  Events.add(tx, 'job.snapshotted', { job = job, tag = args.tag, step = whole.step, groups = whole.groups })
  return answer(number, 'complete', retired)
end

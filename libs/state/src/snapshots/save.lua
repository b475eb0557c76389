--[[ Saves one page of what a job has between two rounds: its long-tail queue with requests and segments (payloads by
reference, which it owns from then on), its counters and counts. It is there when the last page is; then only the last
two are kept. When something was dropped between two pages, it begins anew.
A page ends with the group that makes it 32 requests.
ARGV[1] JSON: {job, trainerEpoch, stamp, tag}   stamp of the trainer, or absent
Reply: tag, step, groups, requests   numbers so far
       state                         'saving' (call again) | 'complete'; a repeat gets the same
       retired                       boolean: an older one is to be deleted
       stamp                         string
Errors: GENERATION_CHANGED, JOB_NOT_FOUND, FENCED, ROUND_CONFLICT, ROUND_SETTLING, RESTORE_UNFINISHED,
SNAPSHOT_EXISTS.
Events: job.snapshotted. ]]
return function(tx, args)
  local PAGE, KEPT = 32, 2
  local job, hash = args.job, tx.key:job(args.job)
  local refused = Generation.stamp_error(tx, Reply.optional(args.stamp)) or Trainer.error(tx, job, args.trainerEpoch)
  if refused then return refused end
  Trainer.seen(tx, job)
  if redis.call('HEXISTS', hash, 'restoring') == 1 then
    return Reply.fail('RESTORE_UNFINISHED', 'The job is being restored; repeat job.restore', 'job', 50)
  end

  local function answer(number, state, retired)
    local snapshot = Snapshots.json(tx, job, number)
    snapshot.state, snapshot.retired, snapshot.savedAtMs = state, retired or false, nil
    return Generation.stamped(tx, cjson.encode(snapshot))
  end
  local known = redis.call('ZSCORE', tx.key:snapshots(job), args.tag)
  if known then
    if redis.call('HGET', tx.key:snapshot(job, known), 'mark') ~= Snapshots.state_mark(tx, job) then
      return Reply.fail('SNAPSHOT_EXISTS', 'The tag names a snapshot of another state', 'tag')
    end
    return answer(known, 'complete')
  end
  local unrest = Snapshots.unrest_of(tx, job)
  if unrest then return unrest end

  local number = redis.call('HGET', hash, 'saving')
  local retired = false
  local function begin()
    if number then
      Snapshots.retire(tx, job, number)
      retired = true
    end
    number = Format.integer(redis.call('HINCRBY', tx.key.meta, 'snapshotSequence', 1))
    redis.call('HSET', hash, 'saving', number)
    redis.call('HSET', tx.key:snapshot(job, number), 'tag', args.tag, 'step', redis.call('HGET', hash, 'stepsTrained')
      or 0,
      'mark', Snapshots.state_mark(tx, job), 'job', cjson.encode(redis.call('HGETALL', hash)), 'groups', 0,
        'requests', 0, 'cursor', '-inf',
      'arrival', redis.call('HGET', tx.key.meta, 'arrivalSequence') or 0)
    for part, name in pairs(Snapshots.COPIED) do
      redis.call('COPY', tx.key[name](tx.key, job), tx.key:snapshotPart(job, number, part), 'REPLACE')
    end
    local steps = tonumber(redis.call('HGET', hash, 'stepsTrained') or 0)
    for back = -1, Snapshots.SAVED_LENGTHS - 1 do
      redis.call('COPY', tx.key:lengths(job, Format.integer(steps - back)), Snapshots.lengths_part(tx, job, number,
        back), 'REPLACE')
    end
    redis.call('COPY', tx.key:rounds(job), tx.key:snapshotPart(job, number, Snapshots.SAVED_ROUNDS), 'REPLACE')
  end
  if not number or redis.call('HMGET', tx.key:snapshot(job, number), 'tag')[1] ~= args.tag
    or redis.call('HGET', tx.key:snapshot(job, number), 'mark') ~= Snapshots.state_mark(tx, job) then
    begin()
  end

  local header = tx.key:snapshot(job, number)
  local cursor = redis.call('HGET', header, 'cursor')
  local page = redis.call('ZRANGEBYSCORE', tx.key:longtail(job), cursor == '-inf' and cursor or '(' .. cursor, '+inf',
    'WITHSCORES', 'LIMIT', 0, PAGE)
  local groups, requests = 0, 0
  for position = 1, #page, 2 do
    if requests >= PAGE then break end
    local group_id = page[position]
    -- Without what is gone it begins anew: the state of the job is another one.
    if Recovery.lose_queued(tx, job, group_id) then return answer(number, 'saving', retired) end
    local saved = { place = page[position + 1], group = redis.call('HGETALL', tx.key:group(job, group_id)),
      requests = {} }
    for index = 0, tonumber(KeptRefs.value_of(saved.group, 'launched')) - 1 do
      saved.requests[index + 1] = redis.call('HGETALL', tx.key:request(Requests.id_of(job, group_id, index)))
    end
    redis.call('HSET', tx.key:snapshotPart(job, number, Snapshots.SAVED_GROUPS), group_id, cjson.encode(saved))
    FreedPayloads.hold_prompt(tx, job, KeptRefs.value_of(saved.group, 'promptRef'))
    cursor, groups, requests = page[position + 1], groups + 1, requests + #saved.requests
  end
  redis.call('HSET', header, 'cursor', cursor)
  redis.call('HINCRBY', header, 'groups', groups)
  redis.call('HINCRBY', header, 'requests', requests)
  if 2 * groups < #page or #page == 2 * PAGE then return answer(number, 'saving', retired) end

  redis.call('HSET', header, 'savedAtMs', Format.integer(tx.now))
  redis.call('HDEL', header, 'cursor')
  redis.call('HDEL', hash, 'saving')
  redis.call('ZADD', tx.key:snapshots(job), number, args.tag)
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:snapshots(job), 0, -1 - KEPT)) do
    Snapshots.retire(tx, job, redis.call('ZSCORE', tx.key:snapshots(job), tag))
    redis.call('ZREM', tx.key:snapshots(job), tag)
    retired = true
  end
  Events.add(tx, 'job.snapshotted', { job = job, tag = args.tag, step = tonumber(redis.call('HGET', header, 'step')),
    groups = tonumber(redis.call('HGET', header, 'groups')) })
  return answer(number, 'complete', retired)
end

--[[ Mends items that an audit has found to be wrong. An item is mended only if all answers that the audit has read for
this item are still the same (compare and set).
ARGV[1] JSON:
  items            list of {seen: list of [read, answer], see audit/views.lua; steps: list of [step, ...], see below}
Reply: mended      list of boolean; of the first items only, when there is much to do
Events: request.lost, group.dropped, group.failed, round.completed, round.settled.
Flags: allow-oom ]]
return function(tx, args)
  local STEPS = {}

  function STEPS.call(one, command, key, ...) redis.call(command, Views.key_of(one, key), ...) end

  function STEPS.set_job(one, job, fields) Job.set(one, job, fields) end
  function STEPS.set_round(one, job, round_id, fields) Round.set(one, { job = job, roundId = round_id }, fields) end
  function STEPS.set_group(one, job, group_id, fields) Group.set(one, { job = job, groupId = group_id }, fields) end

  -- Writes the indexes that follow from the stored server.
  function STEPS.publish(one, id) Servers.publish(one, Servers.get(one, id)) end
  function STEPS.index(one, id)
    ServerHash.remove_index_entries(one, id)
    ServerHash.save_index_entries(one, id)
  end
  function STEPS.rescore(one, id, epoch)
    local server = Servers.get(one, id)
    if server and server.epoch == epoch then Servers.rescore(one, server) end
  end

  -- Sets whether the list of a request names a lease.
  function STEPS.listed(one, request_id, acquire_id, is_listed)
    if is_listed then
      RequestLeases.add(one, request_id, acquire_id)
    else
      RequestLeases.remove(one, request_id, acquire_id)
    end
  end
  function STEPS.residency(one, id, epoch, tokens, growth) Residency.set_sums(one, id, epoch, tokens, growth) end
  function STEPS.park(one, acquire_id) Parked.save(one, Parked.get(one, acquire_id)) end
  function STEPS.session(one, id, leases)
    local binding = Sessions.get(one, id)
    binding.leases = leases
    if leases == 0 and binding.finished then return Sessions.forget(one, id, binding) end
    Sessions.save(one, id, binding)
    if leases > 0 then return redis.call('ZREM', one.key.idleSessions, id) end
    redis.call('ZADD', one.key.idleSessions, 'NX', Format.integer(one.now), id)
  end

  function STEPS.enqueue(one, job, request_id, front)
    Requests.enqueue(one, job, { request_id }, front and Dispatch.BEGUN)
  end
  -- Ends a group that lacks a sample, or that is gone, as other transitions do when they find such a group.
  function STEPS.lose_group(one, job, group_id)
    local group = Group.load(one, job, group_id)
    LostRecords.load_requests(one, group)
    GroupEnds.lose_group(one, Round.load(one, job, group.roundId), group)
  end
  function STEPS.lose_queued(one, job, group_id) Recovery.lose_queued(one, job, group_id) end

  local function is_same(answer, seen)
    if type(answer) ~= 'table' or type(seen) ~= 'table' then return answer == seen end
    for name, value in pairs(answer) do
      if not is_same(value, seen[name]) then return false end
    end
    for name in pairs(seen) do
      if answer[name] == nil then return false end
    end
    return true
  end

  local mended = {}
  for index, item in ipairs(args.items) do
    if Views.is_enough(tx) then break end
    -- Each item gets a new Tx, because values that were read for one item may be out of date for the next.
    local one = Tx.open(tx.root)
    local reads, seen = {}, {}
    for position, read in ipairs(item.seen) do reads[position], seen[position] = read[1], read[2] end
    mended[index] = is_same(cjson.decode(cjson.encode(Views.answers(one, reads))), seen)
    if mended[index] then
      for _, step in ipairs(item.steps) do STEPS[step[1]](one, unpack(step, 2)) end
      Servers.write_scores(one)
      Loads.save(one)
      Residency.save(one)
    end
    tx.entries_read = tx.entries_read + one.entries_read
  end
  return cjson.encode({ mended = mended })
end

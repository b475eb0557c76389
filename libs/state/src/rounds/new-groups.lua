-- Submitted groups: whether they may be added, and how they are stored.
local NewGroups = {}

-- Number of samples to launch for a group. In binary, 1.1 x 10 is a little more than 11.
local function launched_of(round, group) return math.ceil(round.sampleOverProvision * group.samples - 1e-9) end

-- Error for groups that can not be added, or nil; `check`: their sizes have to be checked too.
function NewGroups.refusal(tx, round, groups, ids, check)
  -- A prompt that is checked now is still there when its group is added: its wait for removal starts again.
  for _, group in ipairs(groups) do
    if group.promptRef and not FreedPayloads.keep_freed(tx, group.promptRef) then
      return Reply.fail('PAYLOAD_NOT_FOUND', 'The prompt ' .. group.promptRef .. ' is being removed; store it again',
        'groups.promptRef')
    end
  end
  -- A prompt comes again in every pass over a data set, each time as a group with another id.
  for position, step in ipairs(redis.call('ZMSCORE', tx.key:trainedGroups(round.job), unpack(ids))) do
    if step then
      return Reply.fail('DUPLICATE_GROUP', 'Group ' .. ids[position] .. ' was trained in step ' .. step
        .. '; in another epoch it is a group with another groupId', 'groupId')
    end
  end
  for _, group in ipairs(check and groups or {}) do
    local launched = launched_of(round, group)
    if launched > GroupDeletion.MAX_SAMPLES then
      return Reply.fail('VALIDATION_FAILED', Format.integer(launched) .. ' samples would be launched for group '
        .. group.groupId .. '; at most ' .. GroupDeletion.MAX_SAMPLES, 'groups.samples')
    end
  end
end

-- Error for groups that do not fit; nil when the groups fit. Room for the live samples is reserved, so that no token of
-- a live sample is refused.
function NewGroups.room_error(tx, round, groups, room)
  local page, live = 0, 0
  for _, group in ipairs(groups) do page = page + launched_of(round, group) * group.maxTokens * room.bytesPerToken end
  for _, count in ipairs(redis.call('HMGET', tx.key:counts(round.job), 'pending', 'claimed', 'running', 'cutting',
    'unfinished')) do
    live = live + tonumber(count or 0)
  end
  local reserved = live * Counts.sample_bytes(tx, round.job, room.bytesPerToken)
  if page > room.quotaBytes then
    return Reply.fail('VALIDATION_FAILED',
      string.format('The samples of the page may take %.0f bytes of payloads, and the quota of the job is %.0f: '
      .. 'submit smaller pages, lower maxTokens, or raise PAYLOAD_QUOTA_BYTES', page, room.quotaBytes), 'groups')
  end
  if reserved + page > room.freeBytes then
    return Reply.fail('PAYLOAD_STORE_FULL',
      string.format('The samples of the page may take %.0f bytes of payloads; %.0f are free, of which '
      .. '%.0f are reserved for %.0f live samples. Close rounds first, drop long-tail groups, or raise '
      .. 'PAYLOAD_QUOTA_BYTES', page, room.freeBytes, reserved, live), 'groups', 1000)
  end
end

function NewGroups.add(tx, round, group)
  local job, launched = round.job, launched_of(round, group)
  local arrival = redis.call('HINCRBY', tx.key.meta, 'arrivalSequence', 1)
  local recount = redis.call('HGET', tx.key:recount(job), 'id')
  local ids = {}
  for index = 0, launched - 1 do
    ids[index + 1] = Request.format_id(job, group.groupId, index)
    Request.create(tx, ids[index + 1], { state = 'pending', queuedAtMs = tx.now, recount = recount or nil })
  end
  local dispatch = group.dispatch or { expectedTokens = 0 }
  local first_arrival = Requests.enqueue(tx, job, ids, dispatch.expectedTokens * Dispatch.TOKEN,
    dispatch.probes and Dispatch.PROBE)
  Group.create(tx, job, group.groupId, { state = 'live', digest = group.digest, samples = group.samples,
    launched = launched, finished = 0, live = launched, roundId = round.roundId, firstRoundId = round.roundId,
    firstStep = round.step, maxTokens = group.maxTokens, promptRef = group.promptRef, sampling = group.sampling,
    arrival = arrival, gated = round.concurrency > 0 or nil, domain = group.domain,
    promptHash = group.promptHash, minSamples = group.minSamples, timeoutMs = group.timeoutMs,
    probedAt = dispatch.probes and first_arrival or nil })
  FreedPayloads.hold_prompt(tx, job, group.promptRef)
  Places.count_live(tx, round, { domain = group.domain }, 1)
  Counts.add_requests(tx, job, 'submitted', launched)
  Counts.add_requests(tx, job, 'pending', launched)
  if recount then redis.call('HINCRBY', tx.key:recount(job), 'pending', launched) end
  Job.add(tx, job, 'submittedTokens', Format.integer(launched * group.maxTokens))
  redis.call('ZADD', tx.key:roundGroups(job, round.roundId), arrival, group.groupId)
end

local TOMBSTONE = 'tombstone' -- in place of an abortId: the answer of that abort was `not-found`
local SCOPES = { 'round', 'group', 'sample' }

-- Applies aborts that arrived before their requests, in the scope that the abort has named, or in the scope of the
-- round.
function NewGroups.end_aborted(tx, round, group)
  local names = { 'G|' .. round.job .. '/' .. group.groupId }
  for index = 0, group.launched - 1 do
    local id = Request.format_id(round.job, group.groupId, index)
    for _, name in ipairs({ id, 'group|' .. id, 'sample|' .. id }) do table.insert(names, name) end
  end
  for position, ends_at in ipairs(redis.call('ZMSCORE', tx.key.abortTombstones, unpack(names))) do
    local is_there = ends_at and tonumber(ends_at) > tx.now and Group.may_be_aborted(group)
    if is_there and position == 1 then
      Aborts.abort_group(tx, round, group, TOMBSTONE, {})
    elseif is_there then
      local id, scope = names[position - (position - 2) % 3], SCOPES[(position - 2) % 3 + 1]
      Aborts.abort_request(tx, round, group, Request.load(tx, id), TOMBSTONE, scope ~= 'round' and scope or nil, {})
    end
  end
end

return NewGroups

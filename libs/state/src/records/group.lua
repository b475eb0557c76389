-- A group as it is stored: a hash, whose fields no other file names. `Group.set` and `Group.add` write the hash and the
-- table together.
local Group = {}

-- A group; nil for a group that is not there. `samples`: number of samples that the group needs; when samples are lost
-- for good, it may fall to `minSamples`. `launched`: number of samples that the group has.
function Group.load(tx, job, group_id)
  local field = redis.call('HMGET', tx.key:group(job, group_id), 'state', 'samples', 'finished', 'live', 'roundId',
    'maxTokens', 'promptRef', 'sampling', 'arrival', 'launched', 'domain', 'firstStep', 'pinned', 'held', 'taken',
    'gated', 'minSamples', 'timeoutMs')
  if not field[1] then return nil end
  return {
    job = job, groupId = group_id, state = field[1], samples = tonumber(field[2]), finished = tonumber(field[3]),
    live = tonumber(field[4]), roundId = field[5], maxTokens = tonumber(field[6]), promptRef = field[7],
    sampling = field[8], arrival = tonumber(field[9] or 0), launched = tonumber(field[10] or field[2]),
    domain = field[11] or nil, firstStep = tonumber(field[12]), pinned = field[13] == '1', held = field[14] == '1',
    taken = field[15] == '1', gated = field[16] == '1', minSamples = tonumber(field[17] or field[2]),
    timeoutMs = tonumber(field[18] or nil),
  }
end

-- Adds to a group the sums of its samples, read once: `tokens` of all samples, tokens of the longest sample (`longest`)
-- and of the longest finished sample (`longestTokens`); `probedAt`: the arrival number of the first request of a group
-- with a probe. Returns the group.
function Group.read_made(tx, group)
  if group.hasMade then return group end
  local field = redis.call('HMGET', tx.key:group(group.job, group.groupId), 'tokens', 'longest', 'oldestVersion',
    'longestTokens', 'lengthBin', 'lengthKind', 'probedAt')
  group.tokens, group.longest = tonumber(field[1] or 0), tonumber(field[2] or 0)
  group.oldestVersion, group.longestTokens = tonumber(field[3] or nil), tonumber(field[4] or 0)
  group.lengthBin, group.lengthKind = tonumber(field[5] or nil), field[6] or nil
  group.probedAt, group.hasMade = tonumber(field[7] or nil), true
  return group
end

-- Adds to a group its history, read once. `longtailSequence`: place of the group in the queue, from the first cut on.
-- Returns the group.
function Group.read_past(tx, group)
  if group.hasPast then return group end
  local field = redis.call('HMGET', tx.key:group(group.job, group.groupId), 'cuts', 'cutStarted', 'longtailSequence',
    'finishedMs', 'promptHash')
  group.cuts, group.cutStarted = tonumber(field[1] or 0), field[2] == '1'
  group.longtailSequence, group.finishedMs = tonumber(field[3] or nil), field[4] or nil
  group.promptHash, group.hasPast = field[5] or nil, true
  return group
end

-- A group as lists show it; counts of a group that is not there are 0.
function Group.read_listed(tx, job, group_id)
  local field = redis.call('HMGET', tx.key:group(job, group_id), 'state', 'samples', 'finished', 'live', 'cuts',
    'firstStep', 'tokens', 'held', 'promptRef')
  return {
    groupId = group_id, state = field[1] or nil, samples = tonumber(field[2] or 0),
    finishedSamples = tonumber(field[3] or 0), liveSamples = tonumber(field[4] or 0), cuts = tonumber(field[5] or 0),
    firstStep = tonumber(field[6] or 0), tokens = tonumber(field[7] or 0), isHeld = field[8] == '1' or nil,
    promptRef = field[9] or nil,
  }
end

-- Digest and round of the submit that made the group; nil for a group that is not there.
function Group.read_submit(tx, job, group_id)
  local field = redis.call('HMGET', tx.key:group(job, group_id), 'digest', 'firstRoundId')
  return field[1] or nil, field[2] or nil
end

-- State and round, for transitions that need nothing else; nil for a group that is not there.
function Group.read_state(tx, job, group_id)
  local field = redis.call('HMGET', tx.key:group(job, group_id), 'state', 'roundId')
  return field[1] or nil, field[2] or nil
end

function Group.exists(tx, job, group_id) return redis.call('EXISTS', tx.key:group(job, group_id)) == 1 end

-- True when the group has as many finished samples as it needs; its other samples are surplus.
function Group.is_whole(group) return group.finished >= group.samples end

local MAY_BE_ABORTED = { live = true, leaving = true, unfinished = true }
function Group.may_be_aborted(group) return MAY_BE_ABORTED[group.state] or false end

-- Name of the group in an index of the pool.
function Group.format_name(group) return group.job .. '/' .. group.groupId end

function Group.create(tx, job, group_id, fields)
  Hashes.store(tx.key:group(job, group_id), {}, fields)
end

-- Sets fields; true is a flag that is set, false deletes a field.
function Group.set(tx, group, fields) Hashes.store(tx.key:group(group.job, group.groupId), group, fields) end

-- Sets the sums of the samples (Group.read_made). Makes no table, because each completion sets the sums.
function Group.set_made(tx, group, tokens, longest, longest_tokens, oldest_version)
  local hash = tx.key:group(group.job, group.groupId)
  if oldest_version then
    redis.call('HSET', hash, 'tokens', tokens, 'longest', longest, 'longestTokens', longest_tokens, 'oldestVersion',
      oldest_version)
  else
    redis.call('HSET', hash, 'tokens', tokens, 'longest', longest, 'longestTokens', longest_tokens)
  end
  group.tokens, group.longest, group.longestTokens = tokens, longest, longest_tokens
  group.oldestVersion = oldest_version
end

-- Changes a count of the group by a number; returns the new count.
function Group.add(tx, group, field, by)
  local count = redis.call('HINCRBY', tx.key:group(group.job, group.groupId), field, by)
  if count < 0 then Job.mark_miscount(tx, group.job) end
  group[field] = count
  return count
end

function Group.delete(tx, job, group_id) redis.call('UNLINK', tx.key:group(job, group_id)) end

-- Copies all fields of a group for a snapshot, and restores them.
function Group.copy(tx, job, group_id) return Hashes.all(tx.key:group(job, group_id)) end
function Group.restore(tx, job, group_id, saved) Hashes.set(tx.key:group(job, group_id), saved) end

return Group

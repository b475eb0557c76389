-- Digests of the results of a round that were read: a running digest over the accepted groups in their order, and over
-- the samples of each group. Redis keeps the running digest at every group that was read to its end, so a cursor that
-- names a position and a digest proves that its holder has read just these groups, whatever Redis has lost or accepted
-- since.
local ResultsDigest = {}

local DIGITS = 16
local function digest(text) return string.sub(redis.sha1hex(text), 1, DIGITS) end

local function first_digest(round) return digest(round.job .. '/' .. round.roundId) end

-- Adds one sample to the digest of a group so far.
function ResultsDigest.with_sample(so_far, id, finish_reason, segments)
  return digest(so_far .. id .. ' ' .. (finish_reason or '') .. ' ' .. segments)
end

-- The digests at the group of a position, from 1: {all, own, groupId}; nil when the group was not read yet.
function ResultsDigest.noted_at(tx, round, position)
  local entry = redis.call('LINDEX', tx.key:roundDigests(round.job, round.roundId), Format.integer(position - 1))
  if not entry then return nil end
  return { all = string.sub(entry, 1, DIGITS), own = string.sub(entry, DIGITS + 1, 2 * DIGITS),
    groupId = string.sub(entry, 2 * DIGITS + 1) }
end

-- The running digest of the first `position` groups, or nil when they have not been read.
function ResultsDigest.digest_at(tx, round, position)
  if position == 0 then return first_digest(round) end
  local noted = ResultsDigest.noted_at(tx, round, position)
  return noted and noted.all
end

-- Notes that a group was read to its end, after `position` other groups with the running digest `so_far`. Returns the
-- running digest with the group.
function ResultsDigest.note_read(tx, round, position, so_far, group_id, own)
  local list, all = tx.key:roundDigests(round.job, round.roundId), digest(so_far .. own .. group_id)
  local entry = all .. own .. group_id
  local known = redis.call('LINDEX', list, Format.integer(position))
  if known ~= entry then
    redis.call('LTRIM', list, 0, Format.integer(position - 1))
    if position == 0 then redis.call('UNLINK', list) end
    redis.call('RPUSH', list, entry)
  end
  return all
end

-- Reads a cursor, generation.position.samples.digest.digest of the samples; nil for another text. Without a cursor
-- reading starts at the first group.
function ResultsDigest.parse_cursor(round, cursor)
  if not cursor then return { position = 0, samples = 0, all = first_digest(round), own = '' } end
  local made_in, position, samples, all, own = string.match(cursor, '^(%x+)%.(%d+)%.(%d+)%.(%x+)%.(%x*)$')
  return made_in and { generation = made_in, position = tonumber(position), samples = tonumber(samples), all = all,
    own = own }
end

function ResultsDigest.cursor_of(tx, place)
  return table.concat({ (Generation.current(tx)), Format.integer(place.position), Format.integer(place.samples),
    place.all, place.own }, '.')
end

return ResultsDigest

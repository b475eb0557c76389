--- @include "clock"
--- @include "reply"
-- The generation of a pool: an id that does not come back when Redis loses its last transitions and goes on from an earlier
-- state. It belongs to the process and the replication history it was made under (`run_id`, `master_replid`), and is renewed
-- when those are others, and when a caller has seen a later event than this Redis has written. A stamp is the generation
-- and the sequence of the last event: who has seen one, and passes it on, learns that something it knows may be lost.
local function of_process()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- The generation, the sequence of the last event, and whether the generation was renewed just now.
local known_generation
local function generation(seen)
  if known_generation then return known_generation, redis.call('HGET', key.meta, 'factSequence') or '0', false end
  local field = redis.call('HMGET', key.meta, 'generation', 'generationOf', 'factSequence')
  local process, sequence, renewed = of_process(), field[3] or '0', false
  local seen_generation, seen_sequence = string.match(seen or '', '^(%x+)%.(%d+)$')
  known_generation = field[1]
  if field[2] ~= process or (seen_generation == known_generation and tonumber(seen_sequence) > tonumber(sequence)) then
    -- The time, since a process may be set back as well: by a restore of its keys.
    local time = redis.call('TIME')
    known_generation = string.sub(redis.sha1hex(process .. time[1] .. '.' .. time[2] .. (field[1] or '')), 1, 16)
    redis.call('HSET', key.meta, 'generation', known_generation, 'generationOf', process)
    renewed = field[1] ~= false
  end
  return known_generation, sequence, renewed
end

local function present_stamp()
  local now, sequence = generation()
  return now .. '.' .. sequence
end

local function generation_changed(field, message)
  return fail('GENERATION_CHANGED', message, field, nil, { stamp = present_stamp() })
end

-- Returns nil, or the error to answer to who has seen another generation. `stamp` is nil for who has seen none.
local function stamp_error(stamp)
  local now = generation(stamp)
  if stamp and string.match(stamp, '^%x+') ~= now then
    return generation_changed('stamp', 'Redis was restarted or set back since: what was done last may be lost; '
      .. 'take the job over and reconcile it')
  end
end

-- A reply to a trainer, with the stamp to pass on.
local function stamped(reply) return string.sub(reply, 1, -2) .. ',"stamp":"' .. present_stamp() .. '"}' end

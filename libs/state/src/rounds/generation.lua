-- The generation of a pool: an id that changes when Redis may have lost its last transitions and continues from an
-- earlier state. A generation belongs to the process and the replication history in which it was created (`run_id`,
-- `master_replid`), and is renewed when these have changed, or when a caller has seen a later event than this Redis has
-- written. A stamp is the generation and the sequence of the last event: a caller that sends a stamp back learns when
-- transitions that the caller knows may be lost. A renewal adds the event pool.set-back.
local Generation = {}

local function of_process()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. string.match(redis.call('INFO', 'replication'),
    'master_replid:(%x+)')
end

-- The generation, the sequence of the last event, and whether the generation was renewed just now.
function Generation.current(tx, seen)
  if tx.known_generation then
    return tx.known_generation, redis.call('HGET', tx.key.meta, 'eventSequence') or '0', false
  end
  local field = redis.call('HMGET', tx.key.meta, 'generation', 'generationOf', 'eventSequence')
  local process, sequence, renewed = of_process(), field[3] or '0', false
  local seen_generation, seen_sequence = string.match(seen or '', '^(%x+)%.(%d+)$')
  tx.known_generation = field[1]
  if field[2] ~= process or (seen_generation == tx.known_generation
    and tonumber(seen_sequence) > tonumber(sequence)) then
    -- The id contains the time, so that it is new even if the keys were restored in the same process.
    local time = redis.call('TIME')
    tx.known_generation = string.sub(redis.sha1hex(process .. time[1] .. '.' .. time[2] .. (field[1] or '')), 1, 16)
    renewed = field[1] ~= false
    redis.call('HSET', tx.key.meta, 'generation', tx.known_generation, 'generationOf', process, 'generationSinceMs',
      Format.integer(renewed and tx.now or 0))
    if renewed then
      Events.add(tx, 'pool.set-back', {})
      sequence = redis.call('HGET', tx.key.meta, 'eventSequence')
    end
  end
  return tx.known_generation, sequence, renewed
end

-- When the generation was renewed last, as far as known; nil for the first generation of a pool. Changes nothing.
function Generation.set_back_at_ms(tx)
  local since = tonumber(redis.call('HGET', tx.key.meta, 'generationSinceMs') or nil) or 0
  return since > 0 and since or nil
end

-- How long ago the generation was renewed, milliseconds; very long for the first generation of a pool.
function Generation.age_ms(tx)
  Generation.current(tx)
  return tx.now - tonumber(redis.call('HGET', tx.key.meta, 'generationSinceMs') or 0)
end

-- The present stamp, for a reply with an error.
function Generation.stamp(tx)
  local now, sequence = Generation.current(tx)
  return now .. '.' .. sequence
end

function Generation.changed(tx, field, message)
  return Reply.fail('GENERATION_CHANGED', message, field, nil, { stamp = Generation.stamp(tx) })
end

-- The error to answer to a caller that has seen another generation; else nil. `stamp`: nil for a new caller.
function Generation.stamp_error(tx, stamp)
  local now = tx.known_generation or Generation.current(tx, stamp)
  if stamp and string.match(stamp, '^%x+') ~= now then
    return Generation.changed(tx, 'stamp', 'Redis was restarted or set back since: what was done last may be lost; '
      .. 'take the job over and reconcile it')
  end
end

-- Adds the stamp to a reply for a trainer, who sends the stamp back. `stamped` takes a JSON object, `reply` fields as
-- in Reply.object.
function Generation.stamped(tx, reply)
  return string.sub(reply, 1, -2) .. ',"stamp":"' .. Generation.stamp(tx) .. '"}'
end

function Generation.reply(tx, fields, json)
  return Generation.stamped(tx, Reply.object(fields, json))
end

return Generation

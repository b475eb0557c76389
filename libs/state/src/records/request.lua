-- A request as it is stored: a hash, whose fields no other file names. `Request.set` and `Request.add` write the hash
-- and the table together. Only requests/requests.lua, which keeps the counts, changes the state of a request.
local Request = {}

Request.HELD = { claimed = true, running = true, cutting = true } -- a worker epoch has the request
Request.LIVE = { pending = true, claimed = true, running = true, cutting = true }
Request.UNCLAIMED = '0' -- attempt of a request that was never claimed

function Request.format_id(job, group_id, index) return job .. '/' .. group_id .. '/' .. Format.integer(index) end

-- Job, groupId and index of a requestId; nil for an id that Request.format_id did not make.
function Request.parse_id(id) return string.match(id, '^([^/]+)/([^/]+)/(%d+)$') end

-- A partial save is a segment, `savedSegment`, and the pieces that later saves have added: the fields `savedPiece:<n>`.
-- `savedPieces` is `<attempt> <tokens of savedSegment> <tokens of all> <number of pieces>`. The version before knows
-- only savedSegment: pieces that do not continue the present one are left over, and count no more.
local function take_pieces(request, packed)
  local attempt, first, all, count = string.match(packed, '^(%S+) (%d+) (%d+) (%d+)$')
  request.storedPieces = tonumber(count)
  if attempt ~= request.attempt or tonumber(first) ~= request.savedTokens then return end
  request.firstTokens, request.savedTokens, request.pieces = request.savedTokens, tonumber(all), request.storedPieces
end

local function piece_fields(count)
  local fields = {}
  for number = 1, count do fields[number] = 'savedPiece:' .. Format.integer(number) end
  return fields
end

-- A request with the fields that most transitions need; nil for a request that is not there.
function Request.load(tx, id)
  local job, group_id, index = Request.parse_id(id)
  if not job then return nil end
  local field = redis.call('HMGET', tx.key:request(id), 'state', 'attempt', 'failures', 'workerId', 'workerEpoch',
    'started', 'segments', 'tokens', 'savedSegment', 'savedTokens', 'movePlan', 'boundServerId', 'boundServerEpoch',
    'stopped', 'recount', 'movedBy', 'setbacks', 'savedPieces')
  if not field[1] then return nil end
  local request = {
    id = id, job = job, groupId = group_id, index = tonumber(index),
    state = field[1], attempt = field[2], failures = tonumber(field[3]),
    workerId = field[4], workerEpoch = field[5], started = field[6] == '1',
    segments = field[7] or '[]', tokens = tonumber(field[8] or 0),
    savedSegment = field[9], savedTokens = tonumber(field[10] or 0), -- with pieces: tokens of all
    movePlan = field[11] or nil, boundServerId = field[12] or nil, boundServerEpoch = field[13] or nil,
    stopped = field[14] or nil, -- 'aborted' or 'timeout': never trained, while its group may continue
    recount = field[15] or nil, -- the last recount that has counted this request
    movedBy = field[16] or nil, -- plan of the move that led to its next or present attempt, see Moves.note_times
    setbacks = field[17] or nil, -- see setbacks.lua
    pieces = 0, -- number of pieces that continue savedSegment
  }
  if field[18] then take_pieces(request, field[18]) end
  return request
end

function Request.exists(tx, id) return redis.call('EXISTS', tx.key:request(id)) == 1 end

function Request.read_state(tx, id) return redis.call('HGET', tx.key:request(id), 'state') or nil end

-- Adds to a request when it was queued and claimed, and the server of its last started attempt, read once. Returns the
-- request.
function Request.read_times(tx, request)
  if request.hasTimes then return request end
  local field = redis.call('HMGET', tx.key:request(request.id), 'queuedAtMs', 'claimedAtMs', 'serverId')
  request.queuedAtMs, request.claimedAtMs = tonumber(field[1] or nil), tonumber(field[2] or nil)
  request.serverId, request.hasTimes = field[3] or nil, true
  return request
end

-- Adds to a request how often and when it was moved, and whether it waits at its engine. Returns the request.
function Request.read_moves(tx, request)
  local field = redis.call('HMGET', tx.key:request(request.id), 'movedAtMs', 'moves', 'waiting')
  request.movedAtMs, request.moves = tonumber(field[1] or nil), tonumber(field[2] or 0)
  request.waiting = field[3] == '1'
  return request
end

-- Adds to a request when its attempt started on the server and when its tokens were saved last, and whether it waits at
-- its engine. Returns the request.
function Request.read_progress(tx, request)
  local field = redis.call('HMGET', tx.key:request(request.id), 'startedAtMs', 'savedAtMs', 'waiting')
  request.startedAtMs, request.savedAtMs = tonumber(field[1] or nil), tonumber(field[2] or nil)
  request.waiting = field[3] == '1'
  return request
end

-- Adds to a request the reasons of its end. Returns the request.
function Request.read_end(tx, request)
  local field = redis.call('HMGET', tx.key:request(request.id), 'finishReason', 'engineFinishReason', 'unconfirmed',
    'fenced')
  request.finishReason, request.engineFinishReason = field[1] or nil, field[2] or nil
  request.unconfirmed, request.fenced = field[3] == '1', field[4] == '1'
  return request
end

-- Adds to a request how long its ended attempts and its present attempt have generated. Returns the request.
function Request.read_generated(tx, request)
  local field = redis.call('HMGET', tx.key:request(request.id), 'generatedMs', 'attemptMs')
  request.generatedMs, request.attemptMs = tonumber(field[1] or 0), tonumber(field[2] or nil)
  return request
end

-- Bin of the ledger that counts a request which was cut with its tokens; nil for other requests.
function Request.read_open_bin(tx, request) return redis.call('HGET', tx.key:request(request.id), 'openBin') or nil end

-- `count_broken_end` and `try_read_attempt` return an error of Redis for a malformed request.
function Request.count_broken_end(tx, id) return redis.pcall('HINCRBY', tx.key:request(id), 'brokenEnds', 1) end
function Request.try_read_attempt(tx, id) return redis.pcall('HGET', tx.key:request(id), 'attempt') end

-- The attempt that holds a request, for a command to its worker.
function Request.fence(request)
  return { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
    workerEpoch = request.workerEpoch }
end

-- Whether the request may still count as a sample of its group.
function Request.can_count(tx, id)
  local field = redis.call('HMGET', tx.key:request(id), 'state', 'stopped')
  return field[1] and field[1] ~= 'failed' and field[1] ~= 'dropped' and not field[2]
end

-- Whether the worker epoch was the last to claim the request.
function Request.is_claimed_by(tx, id, worker_id, worker_epoch)
  local holder = redis.call('HMGET', tx.key:request(id), 'workerId', 'workerEpoch')
  return holder[1] == worker_id and holder[2] == worker_epoch
end

function Request.create(tx, id, fields)
  fields.failures, fields.attempt = 0, Request.UNCLAIMED
  Hashes.store(tx.key:request(id), nil, fields)
end

-- Sets fields; true is a flag that is set, false deletes a field.
function Request.set(tx, request, fields) Hashes.store(tx.key:request(request.id), request, fields) end

-- Notes that the attempt runs on a server; `is_waiting`: still in the queue of the engine.
function Request.set_running(tx, request, server_id, is_waiting)
  Hashes.set(tx.key:request(request.id), { started = 1, serverId = server_id, waiting = is_waiting and 1 or 0,
    startedAtMs = not request.started and tx.now_text or nil })
  request.started, request.serverId, request.waiting = true, server_id, is_waiting
end

-- The next three functions make no table, because each completion and each claim calls them.

-- Sets the state, and other fields that are a flat list of name and value, or nil.
local NO_FIELDS = {}
function Request.set_state(tx, request, state, fields)
  fields = fields or NO_FIELDS
  redis.call('HSET', tx.key:request(request.id), 'state', state, unpack(fields))
  request.state = state
  for position = 1, #fields, 2 do request[fields[position]] = fields[position + 1] end
end

-- Sets the segments, JSON, and the number of their tokens.
function Request.set_segments(tx, request, segments, tokens)
  redis.call('HSET', tx.key:request(request.id), 'segments', segments, 'tokens', tokens)
  request.segments, request.tokens = segments, tokens
end

-- The segments (JSON) of the partial save of the attempt, in order.
function Request.read_saved(tx, request)
  if not request.savedSegment then return {} end
  if request.pieces == 0 then return { request.savedSegment } end
  local segments = redis.call('HMGET', tx.key:request(request.id), unpack(piece_fields(request.pieces)))
  table.insert(segments, 1, request.savedSegment)
  return segments
end

local function forget_pieces(tx, request)
  if not request.storedPieces then return end
  redis.call('HDEL', tx.key:request(request.id), 'savedPieces', unpack(piece_fields(request.storedPieces)))
  request.pieces, request.storedPieces = 0, nil
end

-- Replaces the partial save of the attempt by a segment, JSON.
function Request.set_saved(tx, request, segment, tokens)
  forget_pieces(tx, request)
  Request.set(tx, request, { savedSegment = segment, savedTokens = tokens, savedAtMs = tx.now_text })
end

-- Adds a segment, JSON, to the partial save of the attempt.
function Request.add_piece(tx, request, segment, tokens)
  if request.pieces == 0 then
    forget_pieces(tx, request)
    request.firstTokens = request.savedTokens
  end
  request.pieces, request.savedTokens = request.pieces + 1, request.savedTokens + tokens
  request.storedPieces = request.pieces
  local count = Format.integer(request.pieces)
  redis.call('HSET', tx.key:request(request.id), 'savedPiece:' .. count, segment, 'savedAtMs', tx.now_text,
    'savedPieces', string.format('%s %.0f %.0f %s', request.attempt, request.firstTokens, request.savedTokens, count))
end

-- Deletes the partial save of the attempt: its tokens are in a segment now, or count no more.
function Request.forget_saved(tx, request)
  forget_pieces(tx, request)
  redis.call('HDEL', tx.key:request(request.id), 'savedSegment', 'savedTokens', 'savedAtMs')
  request.savedSegment, request.savedTokens = nil, 0
end

-- Deletes all tokens of the request, and the time that they took.
function Request.forget_tokens(tx, request)
  redis.call('HDEL', tx.key:request(request.id), 'segments', 'tokens', 'generatedMs', 'attemptMs')
  request.segments, request.tokens, request.generatedMs, request.attemptMs = '[]', 0, 0, nil
end

-- Changes a count of the request by a number; returns the new count.
function Request.add(tx, request, field, by)
  request[field] = redis.call('HINCRBY', tx.key:request(request.id), field, by)
  return request[field]
end

function Request.delete(tx, id) redis.call('UNLINK', tx.key:request(id)) end

-- Copies all fields of a request for a snapshot, and restores them.
function Request.copy(tx, id) return Hashes.all(tx.key:request(id)) end
function Request.restore(tx, id, saved) Hashes.set(tx.key:request(id), saved) end

return Request

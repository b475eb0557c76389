-- The one place where a request changes its state: it keeps the counts, the index of its holder, the pending queue and
-- the counters of its group and round in step, so that at every moment submitted = the sum of all states.
local Requests = {}

Requests.HELD = { claimed = true, running = true, cutting = true } -- a worker epoch has it
Requests.LIVE = { pending = true, claimed = true, running = true, cutting = true }
Requests.UNCLAIMED = '0' -- attempt of a request that was never claimed

function Requests.id_of(job, group_id, index) return job .. '/' .. group_id .. '/' .. Format.integer(index) end

function Requests.load(tx, id)
  local job, group_id, index = string.match(id, '^([^/]+)/([^/]+)/(%d+)$')
  if not job then return nil end
  local field = redis.call('HMGET', tx.key:request(id), 'state', 'attempt', 'failures', 'workerId', 'workerEpoch',
    'started',
    'segments', 'tokens', 'savedSegment', 'savedTokens', 'movePlan', 'boundServerId', 'boundServerEpoch', 'stopped',
    'recount', 'movedBy', 'setbacks')
  if not field[1] then return nil end
  return {
    id = id, job = job, groupId = group_id, index = tonumber(index),
    state = field[1], attempt = field[2], failures = tonumber(field[3]),
    workerId = field[4], workerEpoch = field[5], started = field[6] == '1',
    segments = field[7] or '[]', tokens = tonumber(field[8] or 0),
    savedSegment = field[9], savedTokens = tonumber(field[10] or 0),
    movePlan = field[11] or nil, boundServerId = field[12] or nil, boundServerEpoch = field[13] or nil,
    stopped = field[14] or nil, -- it is never trained: 'aborted' or 'timeout'; its group may continue
    recount = field[15] or nil, -- the last recount that has counted it
    movedBy = field[16] or nil, -- the plan of the move that its next or present attempt began with, see Moves.time
    setbacks = field[17] or nil, -- see setbacks.lua
  }
end

-- The attempt that holds a request, for a command to its worker.
function Requests.fence(request)
  return { requestId = request.id, attempt = request.attempt, workerId = request.workerId,
    workerEpoch = request.workerEpoch }
end

-- Puts requests of one job into the pending queue. Their places are their arrival numbers less `ahead` (default: 0);
-- the first has `first_ahead` instead, if that is given (Dispatch). Returns the arrival number of the first.
function Requests.enqueue(tx, job, ids, ahead, first_ahead)
  local last = redis.call('HINCRBY', tx.key.meta, 'pendingSequence', #ids)
  local entries = {}
  for position, id in ipairs(ids) do
    local by = position == 1 and first_ahead or ahead or 0
    entries[2 * position - 1] = Format.integer(last - #ids + position - by)
    entries[2 * position] = id
  end
  redis.call('ZADD', tx.key:pending(job), unpack(entries))
  ClaimTurns.offer(tx, job)
  return last - #ids + 1
end

-- `group` gets the counters as they are afterwards. `fields`: others of the request that change, a flat list; nil for
-- none. `front` only matters for `pending`.
local NO_FIELDS = {}
function Requests.move(tx, request, group, to, fields, front)
  local from = request.state
  if Requests.HELD[from] and not Requests.HELD[to] and to ~= 'finished' then
    AttemptEnds.add(tx, request, group, to)
  end
  if request.movedBy and not Requests.HELD[to] then Moves.end_times(tx, request) end
  redis.call('HSET', tx.key:request(request.id), 'state', to, unpack(fields or NO_FIELDS))
  Counts.add_requests(tx, request.job, from, -1)
  Counts.add_requests(tx, request.job, to, 1)
  Counts.count_again(tx, request, from, to)
  if from == 'pending' then redis.call('ZREM', tx.key:pending(request.job), request.id) end
  if to == 'pending' then
    redis.call('HSET', tx.key:request(request.id), 'queuedAtMs', Format.integer(tx.now))
    Requests.enqueue(tx, request.job, { request.id }, front and Dispatch.BEGUN)
  end
  if Requests.HELD[from] ~= Requests.HELD[to] then
    local held = tx.key:workerAttempts(request.workerId, request.workerEpoch)
    redis.call(Requests.HELD[to] and 'SADD' or 'SREM', held, request.id)
    if Requests.HELD[from] then ClaimTurns.readmit(tx, request.job) end
    if group.gated then
      Counts.add(tx, tx.key:round(request.job, group.roundId), request.job, 'inFlight', Requests.HELD[to] and 1 or -1)
     end
  end
  if Requests.LIVE[from] ~= Requests.LIVE[to] then
    group.live = Counts.add(tx, tx.key:group(request.job, request.groupId), request.job, 'live', Requests.LIVE[to] and 1
      or -1)
  end
  if from == 'finished' or to == 'finished' then
    group.finished = Counts.add(tx, tx.key:group(request.job, request.groupId), request.job, 'finished',
      to == 'finished' and 1 or -1)
  end
  if from == 'cutting' and request.movePlan then Moves.finish(tx, request, to)
  elseif from == 'pending' and request.boundServerId then Moves.unbind(tx, request) end
  if to == 'unfinished' and request.tokens > 0 then
    redis.call('HSET', tx.key:request(request.id), 'openBin', Ledger.count_open(tx, request.job, group.roundId,
      request.tokens))
  elseif from == 'unfinished' then
    local bin = redis.call('HGET', tx.key:request(request.id), 'openBin')
    if bin then Ledger.close_open(tx, request.job, group.roundId, bin) end
    redis.call('HDEL', tx.key:request(request.id), 'openBin')
  end
  request.state = to
end

return Requests

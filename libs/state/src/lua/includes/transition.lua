--- @include "keys"
--- @include "counts"
--- @include "ledger"
--- @include "turns"
--- @include "moves"
-- The one place where a request changes its state: it keeps the books, the index of its holder, the pending queue and
-- the counters of its group and round in step, so that at every moment submitted = the sum of all states.
local HELD = { claimed = true, running = true, cutting = true } -- a worker epoch has it
local LIVE = { pending = true, claimed = true, running = true, cutting = true }
local UNCLAIMED = '0' -- attempt of a request that nobody has had
local FRONT = 2 ^ 40 -- what was begun before goes ahead of what was not

local function integer(value) return string.format('%.0f', value) end

local function request_id(job, group_id, index) return job .. '/' .. group_id .. '/' .. integer(index) end

local function load_request(id)
  local job, group_id, index = string.match(id, '^([^/]+)/([^/]+)/(%d+)$')
  if not job then return nil end
  local field = redis.call('HMGET', key.request(id), 'state', 'attempt', 'failures', 'workerId', 'workerEpoch', 'started',
    'segments', 'tokens', 'checkpoint', 'checkpointTokens', 'movePlan', 'boundServerId', 'boundServerEpoch', 'stopped',
    'recount')
  if not field[1] then return nil end
  return {
    id = id, job = job, groupId = group_id, index = tonumber(index),
    state = field[1], attempt = field[2], failures = tonumber(field[3]),
    workerId = field[4], workerEpoch = field[5], started = field[6] == '1',
    segments = field[7] or '[]', tokens = tonumber(field[8] or 0),
    checkpoint = field[9], checkpointTokens = tonumber(field[10] or 0),
    movePlan = field[11] or nil, boundServerId = field[12] or nil, boundServerEpoch = field[13] or nil,
    stopped = field[14] or nil, -- it is never trained: 'aborted' or 'timeout'; its group may go on
    recount = field[15] or nil, -- the last recount that has been to it
  }
end

-- Puts requests of one job into the pending queue, in their order; `ahead`, a list: by how much each goes ahead of that.
-- Returns the place of the first.
local function enqueue(job, ids, front, ahead)
  local last = redis.call('HINCRBY', key.meta, 'pendingSequence', #ids)
  local entries = {}
  for position, id in ipairs(ids) do
    local sequence = last - #ids + position
    entries[2 * position - 1] = integer(sequence - (front and FRONT or 0) - (ahead and ahead[position] or 0))
    entries[2 * position] = id
  end
  redis.call('ZADD', key.pending(job), unpack(entries))
  offer_job(job)
  return last - #ids + 1
end

-- `front` only matters for `pending`; `group` gets the counters as they are afterwards.
local function move_request(request, group, to, front)
  local from = request.state
  redis.call('HSET', key.request(request.id), 'state', to)
  count_requests(request.job, from, -1)
  count_requests(request.job, to, 1)
  count_again(request, from, to)
  if from == 'pending' then redis.call('ZREM', key.pending(request.job), request.id) end
  if to == 'pending' then enqueue(request.job, { request.id }, front) end
  if HELD[from] ~= HELD[to] then
    local held = key.workerAttempts(request.workerId, request.workerEpoch)
    redis.call(HELD[to] and 'SADD' or 'SREM', held, request.id)
    if HELD[from] then readmit_job(request.job) end
    if group.gated then
      count_in(key.round(request.job, group.roundId), request.job, 'inFlight', HELD[to] and 1 or -1)
     end
  end
  if LIVE[from] ~= LIVE[to] then
    group.live = count_in(key.group(request.job, request.groupId), request.job, 'live', LIVE[to] and 1 or -1)
  end
  if from == 'finished' or to == 'finished' then
    group.finished = count_in(key.group(request.job, request.groupId), request.job, 'finished', to == 'finished' and 1 or -1)
  end
  if from == 'cutting' and request.movePlan then end_move(request, to)
  elseif from == 'pending' and request.boundServerId then unbind(request) end
  if to == 'unfinished' and request.tokens > 0 then
    redis.call('HSET', key.request(request.id), 'openBin', count_open(request.job, group.roundId, request.tokens))
  elseif from == 'unfinished' then
    local bin = redis.call('HGET', key.request(request.id), 'openBin')
    if bin then close_open(request.job, bin) end
    redis.call('HDEL', key.request(request.id), 'openBin')
  end
  request.state = to
end

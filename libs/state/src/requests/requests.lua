-- Only this file changes the state of a request. With the state it changes the counts, the index of the request's
-- holder, the pending queue and the counters of its group and round, so that at every moment submitted = the sum of all
-- states.
local Requests = {}

-- Puts requests of one job into the pending queue. The place of a request is its arrival number less `ahead` or 0; the
-- first request has `first_ahead` instead, if given (Dispatch). Returns the arrival number of the first request.
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

-- Moves a request to the state `to`. `group` gets the counters as they are afterwards. `fields` as in
-- Request.set_state. `front` only matters for `pending`: the request comes before requests that have not started.
function Requests.move(tx, request, group, to, fields, front)
  local from = request.state
  if Request.HELD[from] and not Request.HELD[to] and to ~= 'finished' then
    AttemptEnds.add(tx, request, group, to)
  end
  if request.movedBy and not Request.HELD[to] then Moves.end_times(tx, request) end
  Request.set_state(tx, request, to, to == 'pending' and { 'queuedAtMs', tx.now } or fields)
  Counts.add_requests(tx, request.job, from, -1)
  Counts.add_requests(tx, request.job, to, 1)
  Counts.count_again(tx, request, from, to)
  if from == 'pending' then redis.call('ZREM', tx.key:pending(request.job), request.id) end
  if to == 'pending' then Requests.enqueue(tx, request.job, { request.id }, front and Dispatch.BEGUN) end
  if Request.HELD[from] ~= Request.HELD[to] then
    local held = tx.key:workerAttempts(request.workerId, request.workerEpoch)
    redis.call(Request.HELD[to] and 'SADD' or 'SREM', held, request.id)
    if Request.HELD[from] then ClaimTurns.readmit(tx, request.job) end
    if group.gated then Round.add_in_flight(tx, group, Request.HELD[to] and 1 or -1) end
  end
  if Request.LIVE[from] ~= Request.LIVE[to] then Group.add(tx, group, 'live', Request.LIVE[to] and 1 or -1) end
  if from == 'finished' or to == 'finished' then Group.add(tx, group, 'finished', to == 'finished' and 1 or -1) end
  if from == 'cutting' and request.movePlan then Moves.finish(tx, request, to)
  elseif from == 'pending' and request.boundServerId then Moves.unbind(tx, request) end
  if to == 'unfinished' and request.tokens > 0 then
    Request.set(tx, request, { openBin = Ledger.count_open(tx, group, request.tokens) })
  elseif from == 'unfinished' then
    local bin = Request.read_open_bin(tx, request)
    if bin then Ledger.close_open(tx, group, bin) end
    Request.set(tx, request, { openBin = false })
  end
end

return Requests

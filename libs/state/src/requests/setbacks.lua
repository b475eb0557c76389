-- The setbacks of a request: attempts in a row that an engine failed or did not serve, without a further token between
-- them. JSON in the field `setbacks` of the request's hash:
--   count     number of setbacks
--   tokens    number of tokens that the request had
--   sinceMs   time of the first failure
--   starts    starts of servers that failed the request
--   servers   servers of the setbacks, the latest last
--   wrong     optional: starts of servers that sent an answer of another dialect
-- Only failures on different starts of servers count for maxFailures, and none while most servers fail calls of other
-- prompts. The same starts may fail the request again until a deadline, which bounds uncounted failures too. An engine
-- that did not serve the request has not failed it. An answer of another dialect without a token ends the request,
-- unless the pool has another server, which may still answer or come back: each further attempt would cost a whole
-- generation and end in the same way.
local Setbacks = {}

local MAX_SERVERS = 16

local function without(list, value)
  local others = {}
  for _, one in ipairs(list) do
    if one ~= value then table.insert(others, one) end
  end
  return others
end

local function read(request, tokens)
  local run = request.setbacks and cjson.decode(request.setbacks)
  if run and run.tokens >= tokens then return run end
  return { count = 0, tokens = tokens, starts = {}, servers = {} }
end

-- Name of the server start on which an attempt ran. An attempt without a known server counts as on a server of its own.
local function start_of(tx, request, server_id)
  if not server_id then return request.attempt end
  local server = Servers.get(tx, server_id)
  return server_id .. '@' .. (server and server.epoch or '')
end

-- Notes a start that sent an answer of another dialect. True when the present start of each server of the pool has
-- sent such an answer.
local function note_wrong(tx, run, start)
  local others = without(run.wrong or {}, start)
  table.insert(others, start)
  if #others > MAX_SERVERS then table.remove(others, 1) end
  run.wrong = others
  local wrong = 0
  for _, one in ipairs(others) do
    local id, epoch = string.match(one, '^(.*)@(.*)$')
    local server = id and Servers.get(tx, id)
    local is_watched = server and server.epoch == epoch and redis.call('ZSCORE', tx.key.watchedServers, id)
    if is_watched then wrong = wrong + 1 end
  end
  return wrong > 0 and wrong >= redis.call('ZCARD', tx.key.servers)
end

-- Notes that an attempt ended in a setback. `why`: {serverId?, isFailure?, isWrong?, deadlineMs?}; `made`: tokens that
-- the attempt adds. True when the request has failed too often.
function Setbacks.note(tx, request, why, made, most_failures)
  local run = read(request, request.tokens + made)
  run.count = run.count + 1
  if why.serverId then
    run.servers = without(run.servers, why.serverId)
    table.insert(run.servers, why.serverId)
    if #run.servers > MAX_SERVERS then table.remove(run.servers, 1) end
  end
  local is_over = false
  if why.isFailure then
    local start = start_of(tx, request, why.serverId)
    if why.isWrong or not why.serverId or not FailingServers.are_most(tx, request.id) then
      run.starts = without(run.starts, start)
      table.insert(run.starts, start)
    end
    run.sinceMs = run.sinceMs or tx.now
    is_over = #run.starts > most_failures or (why.deadlineMs ~= nil and tx.now - run.sinceMs >= why.deadlineMs)
    if why.isWrong and made == 0 then is_over = note_wrong(tx, run, start) or is_over end
  end
  Request.set(tx, request, { setbacks = cjson.encode(run), failures = #run.starts })
  return is_over
end

-- Number of setbacks and the servers to avoid, for a claim; nil after a further token.
function Setbacks.of_claim(request)
  if not request.setbacks then return nil, nil end
  local run = read(request, request.tokens)
  if run.count == 0 then return nil, nil end
  return run.count, run.servers[1] and run.servers or nil
end

return Setbacks
